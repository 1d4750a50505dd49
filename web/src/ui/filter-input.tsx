import { useEffect, useRef, useState } from "react";
import { classes } from "../lib/classes";
import { inputLook } from "./field";

type Props = { label: string; value: string; onChange: (text: string) => void; placeholder: string; className?: string };

/** The filter of a list. It keeps its own text, since the address follows a little later than fingers type. */
export function FilterInput({ label, value, onChange, placeholder, className = "max-w-md" }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [draft, setDraft] = useState(value);
  useEffect(() => {
    if (document.activeElement !== input.current) setDraft(value);
  }, [value]);
  return (
    <input
      ref={input}
      data-filter
      aria-label={label}
      value={draft}
      spellCheck={false}
      placeholder={placeholder}
      onChange={(event) => {
        setDraft(event.target.value);
        onChange(event.target.value);
      }}
      className={classes(inputLook, "h-7.5", className)}
    />
  );
}
