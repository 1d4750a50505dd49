import { useState } from "react";
import { useSaved } from "../../api/saved";
import { Button } from "../../ui/button";
import { Menu, type MenuItem } from "../../ui/menu";
import { NameDialog } from "../../ui/name-dialog";

const ALWAYS: [string, string][] = [
  ["Failed in the last hour", "status:failed started:<1h"],
  ["Running for more than 5 minutes", "status:running duration:>5m"],
  ["Paused", "status:paused"],
];

/** Filters with a name: a few that are always there, and those that the tenant has saved. */
export function Views({ text, onOpen }: { text: string; onOpen: (text: string) => void }) {
  const { saved, save, remove } = useSaved("view", "instances");
  const [isNaming, setIsNaming] = useState(false);
  const open = saved.find((view) => view.text === text);
  const items: MenuItem[] = [
    ...ALWAYS.map(([name, filter]) => ({ name, checked: filter === text, onSelect: () => onOpen(filter) })),
    ...(saved.length > 0 ? (["line"] as const) : []),
    ...saved.map((view) => ({ name: view.name, checked: view.text === text, onSelect: () => onOpen(view.text) })),
    "line",
    { name: "Save this filter…", disabled: text === "", onSelect: () => setIsNaming(true) },
    ...(open ? [{ name: `Remove “${open.name}”`, danger: true, onSelect: () => void remove(open.name) }] : []),
  ];
  return (
    <>
      <Menu label="Views" trigger={<Button>Views</Button>} items={items} />
      {isNaming && <NameDialog onClose={() => setIsNaming(false)} onName={(name) => { void save(name, text); setIsNaming(false); }} />}
    </>
  );
}
