// Makes src/api/schema.ts of openapi.json. With the address of a server, openapi.json is fetched from it before.
//   node scripts/types.mjs [http://127.0.0.1:7070]
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const here = (path) => new URL(`../${path}`, import.meta.url);
const [server] = process.argv.slice(2);

if (server) {
  const answer = await fetch(`${server}/openapi.json`);
  if (!answer.ok) throw new Error(`${server}/openapi.json answered with status ${answer.status}`);
  await writeFile(here("openapi.json"), `${JSON.stringify(await answer.json(), null, 1)}\n`);
}

const document = JSON.parse(await readFile(here("openapi.json"), "utf8"));
for (const methods of Object.values(document.paths)) {
  // Ids of operations repeat between resources; without them the types are inlined by path.
  for (const operation of Object.values(methods)) delete operation.operationId;
}
const types = await openapiTS(document, { defaultNonNullable: false });
await writeFile(here("src/api/schema.ts"), `// Generated from openapi.json by scripts/types.mjs.\n${astToString(types)}`);
