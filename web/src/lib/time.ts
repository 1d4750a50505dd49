import { useSyncExternalStore } from "react";
import { duration } from "./format";

const SECOND_MS = 1_000;

let now = Date.now();
const listeners = new Set<() => void>();
let ticker: ReturnType<typeof setInterval> | undefined;

/** The time, once a second, for everything on the page that counts. */
export function useNow(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      ticker ??= setInterval(() => {
        now = Date.now();
        for (const each of listeners) each();
      }, SECOND_MS);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
          clearInterval(ticker);
          ticker = undefined;
        }
      };
    },
    () => now,
  );
}

export const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });

export function clockTime(at: number): string {
  return clock.format(at);
}

export function dayTime(at: number): string {
  return day.format(at);
}

export function fullTime(at: number): string {
  return full.format(at);
}

/** `12 s ago`, `in 3m 4s`; beyond a week the date. */
export function relative(at: number, from: number): string {
  const distance = at - from;
  if (Math.abs(distance) > 7 * 86_400_000) return dayTime(at);
  if (Math.abs(distance) < SECOND_MS) return "now";
  const text = duration(Math.floor(Math.abs(distance) / SECOND_MS) * SECOND_MS).replace(".0", "");
  return distance < 0 ? `${text} ago` : `in ${text}`;
}

export function millis(at: string | null | undefined): number | undefined {
  if (!at) return undefined;
  const value = Date.parse(at);
  return Number.isNaN(value) ? undefined : value;
}
