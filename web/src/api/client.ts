import createClient from "openapi-fetch";
import { basePath } from "../lib/base";
import { REASON_HEADER } from "../lib/command";
import { ConnectionError, problemToError } from "./errors";
import type { components, paths } from "./schema";
import { scopeUrl } from "./scope";

export type Schemas = components["schemas"];

/** Follows whether the server answers; the banner shows it. */
export const reachability = {
  isReachable: true,
  listeners: new Set<() => void>(),
  report(isReachable: boolean) {
    if (this.isReachable === isReachable) return;
    this.isReachable = isReachable;
    for (const listener of this.listeners) listener();
  },
};

let reason: string | undefined;

/** Runs a change: its requests carry the reason, which the audit log keeps. Dialogs that change something run one at a time. */
export async function because<T>(why: string | undefined, change: () => Promise<T>): Promise<T> {
  reason = why;
  try {
    return await change();
  } finally {
    reason = undefined;
  }
}

async function send(request: Request): Promise<Response> {
  const url = scopeUrl(new URL(request.url), basePath);
  if (reason !== undefined && request.method !== "GET") request.headers.set(REASON_HEADER, encodeURIComponent(reason));
  try {
    // A body that is passed on as a stream would need HTTP/2.
    const body = request.method === "GET" || request.method === "HEAD" ? undefined : await request.text();
    const response = await fetch(url, { method: request.method, headers: request.headers, body, signal: request.signal });
    reachability.report(response.status !== 502 && response.status !== 504);
    return response;
  } catch (error) {
    if (request.signal.aborted) throw error;
    reachability.report(false);
    throw new ConnectionError();
  }
}

const origin = window.location.origin + basePath.replace(/\/$/, "");

export const api = createClient<paths>({
  baseUrl: origin,
  fetch: send,
  querySerializer: { array: { style: "form", explode: true } },
});

/** Unwraps an answer: the data of a success; a problem is thrown. */
export async function data<T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await answer;
  if (!response.ok) throw problemToError(response.status, error);
  return data as T;
}

type Options = { query?: Record<string, string | number | undefined>; body?: unknown; method?: string; headers?: HeadersInit };

/** A request to a route that the checked-in OpenAPI document does not have; older servers answer 404. */
export async function request<T>(path: string, options: Options = {}): Promise<T> {
  const url = new URL(origin + path);
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const headers = new Headers(options.headers);
  if (options.body !== undefined) headers.set("content-type", "application/json");
  const response = await send(
    new Request(url, {
      method: options.method ?? "GET",
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
    }),
  );
  const text = await response.text();
  const parsed = parse(text);
  if (!response.ok) throw problemToError(response.status, parsed);
  return parsed as T;
}

function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
