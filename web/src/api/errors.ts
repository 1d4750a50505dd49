import type { components } from "./schema";

export type Problem = components["schemas"]["Problem"];

/** An answer that is not a success, as the server describes it. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fields: { field: string; detail: string }[] = [],
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** No answer at all: the server is away, or the network is. */
export class ConnectionError extends Error {
  constructor() {
    super("The server does not answer.");
    this.name = "ConnectionError";
  }
}

export function problemToError(status: number, body: unknown): ApiError {
  const problem = (typeof body === "object" && body !== null ? body : {}) as Partial<Problem>;
  return new ApiError(
    status,
    problem.code ?? `http-${status}`,
    problem.detail ?? problem.title ?? `The server answered with status ${status}.`,
    problem.errors ?? [],
  );
}
