import { useState } from "react";
import { Button } from "./button";

/** Works without the clipboard API too: it is missing on plain HTTP beyond localhost. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

const SHOWN_MS = 1_500;

export function Copy({ text, children, label }: { text: string; children?: React.ReactNode; label?: string }) {
  const [isDone, setIsDone] = useState(false);
  const copy = async () => {
    setIsDone(await copyText(text));
    setTimeout(() => setIsDone(false), SHOWN_MS);
  };
  return (
    <Button look="ghost" icon={isDone ? "check" : "copy"} onClick={() => void copy()} aria-label={children ? undefined : (label ?? "Copy")}>
      {children}
    </Button>
  );
}
