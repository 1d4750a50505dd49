import { useState } from "react";
import { useSaved } from "../../api/saved";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { Menu, type MenuItem } from "../../ui/menu";
import { messageOf } from "../../ui/states";

const ALWAYS: [string, string][] = [
  ["Failed in the last hour", "status:failed started:<1h"],
  ["Running for more than 5 minutes", "status:running duration:>5m"],
  ["Paused", "status:paused"],
];

/** Filters with a name: a few for everybody, and those that the tenant has saved. */
export function Views({ text, onOpen }: { text: string; onOpen: (text: string) => void }) {
  const { isServed, saved, save, remove } = useSaved("view");
  const [isNaming, setIsNaming] = useState(false);
  const mine = saved.filter((view) => view.page === "instances");
  const open = mine.find((view) => view.text === text);
  const items: MenuItem[] = [
    ...ALWAYS.map(([name, filter]) => ({ name, checked: filter === text, onSelect: () => onOpen(filter) })),
    ...(mine.length > 0 ? (["line"] as const) : []),
    ...mine.map((view) => ({ name: view.name, checked: view.text === text, onSelect: () => onOpen(view.text) })),
    ...(isServed ? (["line", { name: "Save this filter…", disabled: text === "", onSelect: () => setIsNaming(true) }] as const) : []),
    ...(open ? [{ name: `Remove “${open.name}”`, danger: true, onSelect: () => void remove(open.id).catch((error) => toast(messageOf(error), true)) }] : []),
  ];
  return (
    <>
      <Menu label="Views" trigger={<Button>Views</Button>} items={items} />
      {isNaming && (
        <NameDialog
          onClose={() => setIsNaming(false)}
          onName={(name) => void save(name, text, "instances").then(() => setIsNaming(false)).catch((error) => toast(messageOf(error), true))}
        />
      )}
    </>
  );
}

export function NameDialog({ onClose, onName }: { onClose: () => void; onName: (name: string) => void }) {
  const [name, setName] = useState("");
  return (
    <Dialog open onClose={onClose} title="Save for the whole tenant" footer={<Button look="primary" disabled={!name.trim()} onClick={() => onName(name)}>Save</Button>}>
      <form onSubmit={(event) => { event.preventDefault(); onName(name); }}>
        <TextField name="Name" value={name} onChange={setName} autoFocus />
      </form>
    </Dialog>
  );
}
