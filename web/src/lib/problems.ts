import { ApiError } from "../api/errors";

/** A place in a document, and what is wrong there. */
export type Problem = { line: number; column: number; text: string; isWarning?: boolean };

/** `line 2, column 9: phases: …`, as the server describes problems of documents. */
export function problemOf(detail: string, isWarning = false): Problem {
  const match = /line (\d+), column (\d+): (.*)$/s.exec(detail);
  return match ? { line: Number(match[1]), column: Number(match[2]), text: match[3] ?? "", isWarning } : { line: 1, column: 1, text: detail, isWarning };
}

export function problemsOf(error: unknown): Problem[] {
  if (!(error instanceof ApiError)) return [];
  return error.fields.length > 0 ? error.fields.map((field) => problemOf(field.detail)) : [problemOf(error.message)];
}
