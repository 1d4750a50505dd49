import { scope } from "../api/scope";
import { basePath } from "./base";

/** The same change from a shell: `segno …`. */
export function cli(...words: string[]): string {
  const { namespace, tenant } = scope();
  const scoped = [
    ...(namespace === "default" ? [] : ["--namespace", namespace]),
    ...(tenant === "default" ? [] : ["--tenant", tenant]),
  ];
  return ["segno", ...words, ...scoped, "--server", window.location.origin + basePath.replace(/\/$/, "")].map(quoted).join(" ");
}

/** Header with the reason of a change, percent-encoded. */
export const REASON_HEADER = "segno-reason";

let isKeyed = false;

/** Whether requests need a key, which is then taken from the environment, as `segno` does. */
export function setKeyed(value: boolean) {
  isKeyed = value;
}

/** The same request from a shell. */
export function curl(method: string, path: string, body?: unknown): string {
  const { namespace, tenant } = scope();
  const url = new URL(window.location.origin + basePath.replace(/\/$/, "") + path);
  if (namespace !== "default" && !path.startsWith("/v1/hooks/")) url.searchParams.set("namespace", namespace);
  if (tenant !== "default") url.searchParams.set("tenant", tenant);
  const parts = ["curl", ...(method === "GET" ? [] : ["-X", method]), quoted(url.href)];
  if (isKeyed) parts.push("-H", '"authorization: Bearer $SEGNO_KEY"');
  if (body !== undefined) parts.push("-H", "'content-type: application/json'", "-d", quoted(JSON.stringify(body)));
  return parts.join(" ");
}

/** A line of `curl` with the reason of the change in its header. */
export function withReason(line: string, reason: string | undefined): string {
  return reason === undefined ? line : `${line} -H ${quoted(`${REASON_HEADER}: ${encodeURIComponent(reason)}`)}`;
}

/** One word of a POSIX shell. */
export function quoted(word: string): string {
  if (/^[A-Za-z0-9_.,:/@%+=-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A command that reads a text from its standard input: its `-`. */
export function piped(text: string, line: string): string {
  return `printf %s ${quoted(text)} | ${line}`;
}
