import * as Radix from "@radix-ui/react-dropdown-menu";
import { classes } from "../lib/classes";
import { useCommands } from "../shell/commands";
import { Icon } from "./icon";

export type MenuItem = { name: string; onSelect: () => void; danger?: boolean; checked?: boolean; disabled?: boolean } | "line";

type Props = {
  trigger: React.ReactNode;
  items: MenuItem[];
  label?: string;
  /** Of one of many rows: the palette does not list its items. */
  isOfRow?: boolean;
};

export function Menu({ trigger, items, label, isOfRow }: Props) {
  const offered = isOfRow ? [] : items.filter((item) => item !== "line" && !item.disabled && !item.checked) as Exclude<MenuItem, "line">[];
  useCommands(offered.map((item) => ({ name: label && label !== "More" ? `${label}: ${item.name}` : item.name, run: item.onSelect })));
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align="end"
          sideOffset={4}
          aria-label={label}
          className="z-50 max-h-[70vh] min-w-44 animate-appear overflow-auto rounded-lg border border-line bg-raised p-1 shadow-pop"
        >
          {items.map((item, index) =>
            item === "line" ? (
              <Radix.Separator key={index} className="my-1 h-px bg-line" />
            ) : (
              <Radix.Item
                key={item.name}
                disabled={item.disabled}
                onSelect={(event) => {
                  if (item.checked !== undefined) event.preventDefault();
                  item.onSelect();
                }}
                className={classes(
                  "flex h-7 cursor-default items-center justify-between gap-4 rounded px-2 outline-none select-none data-disabled:opacity-40 data-highlighted:bg-hover",
                  item.danger && "text-bad",
                )}
              >
                {item.name}
                {item.checked && <Icon name="check" size={13} />}
              </Radix.Item>
            ),
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
