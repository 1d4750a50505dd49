import { useSyncExternalStore } from "react";
import { Button } from "../ui/button";
import { Icon } from "../ui/icon";

type Toast = { id: number; text: string; isError: boolean };

const SHOWN_MS = 6_000;
const MAX_SHOWN = 4;

let toasts: Toast[] = [];
let next = 0;
const listeners = new Set<() => void>();

function set(value: Toast[]) {
  toasts = value;
  for (const listener of listeners) listener();
}

function dismiss(id: number) {
  set(toasts.filter((toast) => toast.id !== id));
}

export function toast(text: string, isError = false) {
  const id = next++;
  set([...toasts.slice(1 - MAX_SHOWN), { id, text, isError }]);
  if (!isError) setTimeout(() => dismiss(id), SHOWN_MS);
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div aria-live="polite" className="pointer-events-none fixed right-4 bottom-4 z-[60] flex w-80 flex-col gap-2">
      {shown.map((toast) => (
        <div key={toast.id} className="pointer-events-auto flex animate-appear items-start gap-2.5 rounded-lg border border-line bg-raised py-2 pr-1.5 pl-3 shadow-pop">
          <Icon name={toast.isError ? "warning" : "check"} className={toast.isError ? "mt-1.5 text-bad" : "mt-1.5 text-good"} />
          <span className="min-w-0 flex-1 py-1 break-words whitespace-pre-wrap">{toast.text}</span>
          <Button look="ghost" icon="close" aria-label="Dismiss" onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}
