import { useState } from "react";

/** What a person prefers on this machine. Nothing secret is kept here. */
export function useStored<T>(name: string, initial: T): [T, (value: T) => void] {
  const key = `segno.${name}`;
  const [value, setValue] = useState<T>(() => {
    try {
      const text = localStorage.getItem(key);
      return text === null ? initial : (JSON.parse(text) as T);
    } catch {
      return initial;
    }
  });
  const store = (next: T) => {
    setValue(next);
    try {
      localStorage.setItem(key, JSON.stringify(next));
    } catch {
      // A full or closed storage only means that the choice ends with the page.
    }
  };
  return [value, store];
}
