import { useStored } from "./storage";

export type Saved = { name: string; text: string };

/** Views and queries with a name, kept in this browser. */
export function useSaved(kind: "views" | "queries") {
  const [saved, setSaved] = useStored<Saved[]>(`saved.${kind}`, []);
  return {
    saved,
    save: (name: string, text: string) => setSaved([...saved.filter((each) => each.name !== name), { name, text }]),
    remove: (name: string) => setSaved(saved.filter((each) => each.name !== name)),
  };
}
