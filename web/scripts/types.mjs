// Makes src/api/schema.ts of openapi.json. With the address of a server, or a binary to start, openapi.json is fetched before.
//   node scripts/types.mjs [http://127.0.0.1:7070 | --of ../target/debug/segno]
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const here = (path) => new URL(`../${path}`, import.meta.url);
const [first, binary] = process.argv.slice(2);

async function fetchFrom(server) {
  const answer = await fetch(`${server}/openapi.json`);
  if (!answer.ok) throw new Error(`${server}/openapi.json answered with status ${answer.status}`);
  await writeFile(here("openapi.json"), `${JSON.stringify(await answer.json(), null, 1)}\n`);
}

if (first === "--of") {
  process.env.SEGNO_BIN = binary;
  const { Server } = await import("../tests/harness.mjs");
  const server = await Server.start();
  await fetchFrom(server.api).finally(() => server.stop());
} else if (first) {
  await fetchFrom(first);
}

const document = JSON.parse(await readFile(here("openapi.json"), "utf8"));
for (const methods of Object.values(document.paths)) {
  // Ids of operations repeat between resources; without them the types are inlined by path.
  for (const operation of Object.values(methods)) delete operation.operationId;
}
const types = await openapiTS(document, { defaultNonNullable: false });
await writeFile(here("src/api/schema.ts"), `// Generated from openapi.json by scripts/types.mjs.\n${astToString(types)}`);
