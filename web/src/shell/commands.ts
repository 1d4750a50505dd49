import { useEffect } from "react";

/** Something that the open page can do. The palette lists it by its name. */
export type Command = { name: string; run: () => void };

const offered = new Map<symbol, Command[]>();

/** Offers the items of a menu to the palette, as long as the menu is on the page. */
export function useCommands(commands: Command[]) {
  useEffect(() => {
    const key = Symbol("commands");
    offered.set(key, commands);
    return () => void offered.delete(key);
  });
}

/** What the open page can do: the buttons beside its title, and the items of its menus. */
export function commandsOfPage(): Command[] {
  const buttons = [...document.querySelectorAll<HTMLButtonElement>("[data-actions] button:not(:disabled):not([aria-haspopup])")];
  const named = buttons.map((button) => ({ name: button.innerText.trim() || (button.getAttribute("aria-label") ?? ""), run: () => button.click() }));
  return [...named, ...[...offered.values()].flat()].filter((command) => command.name !== "");
}
