import { type Schemas, api, data } from "./client";

/** A query over live state, where no route has the same. */
export async function sql(query: string, options: Partial<Schemas["SqlQuery"]> = {}): Promise<Schemas["SqlAnswer"]> {
  return (await data(api.POST("/v1/sql", { body: { query, ...options } }))) as Schemas["SqlAnswer"];
}

/** A text as a constant of SQL. */
export function quotedSql(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
