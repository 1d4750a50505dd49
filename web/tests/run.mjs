// Runs the stories, each a person's errand on a page:
//   node tests/run.mjs [part of a name]          the stories of the gate
//   node tests/run.mjs --all [part of a name]    these, and the long ones
import { readdir } from "node:fs/promises";
import { furnish } from "./furnish.mjs";
import { Browser, Server } from "./harness.mjs";

const words = process.argv.slice(2);
const directories = words.includes("--all") ? ["stories", "long"] : ["stories"];
const [wanted = ""] = words.filter((word) => !word.startsWith("--"));

/** Stories with servers of their own run beside the others: on two cores, one waits while the other works. */
const shared = [];
const apart = [];
for (const directory of directories) {
  for (const file of (await readdir(new URL(`${directory}/`, import.meta.url))).sort()) {
    const module = await import(`./${directory}/${file}`);
    for (const [name, run] of Object.entries(module.default)) {
      if (name.includes(wanted)) (module.hasOwnServers ? apart : shared).push({ name, run });
    }
  }
}

const browser = await Browser.start();
const began = Date.now();
let failed = 0;

/** Runs a story; what went wrong, if anything did. With a server, on a page of its own. */
async function attempt(run, server) {
  let page;
  try {
    if (server === undefined) return await run({ browser });
    page = await browser.open(server.page);
    await run({ page, server, browser, go: (path) => page.goto(server.page + path) });
    await browser.close(page);
    return undefined;
  } catch (error) {
    await page?.screenshot({ path: `/tmp/segno-web-${failed}.png` }).catch(() => {});
    await page?.context().close().catch(() => {});
    return error;
  }
}

/** Runs a story that has failed again: on a server of its own, as the first try has left things behind under the names that it uses. */
async function again(run, server) {
  if (server === undefined) return attempt(run, undefined);
  const fresh = await Server.start();
  try {
    await furnish(fresh.api);
    return await attempt(run, fresh);
  } finally {
    await fresh.stop();
  }
}

/** Runs stories one after the other. One that fails is tried again, and reported. */
async function tell(stories, server) {
  for (const { name, run } of stories) {
    const started = Date.now();
    const first = await attempt(run, server);
    const error = first && (await again(run, server));
    const verdict = error ? "FAIL " : first ? "FLAKY" : "ok   ";
    console.log(`${verdict} ${name} (${Date.now() - started} ms)`);
    if (first) console.log(String(first.stack ?? first).replace(/^/gm, "      "));
    if (error) failed += 1;
  }
}

async function tellShared() {
  if (shared.length === 0) return;
  const server = await Server.start();
  try {
    await furnish(server.api);
    await tell(shared, server);
  } finally {
    await server.stop();
  }
}

try {
  await Promise.all([tellShared(), tell(apart, undefined)]);
} finally {
  await browser.stop();
}
if (shared.length + apart.length === 0) failed += 1;
if (failed > 0) process.exitCode = 1;
console.log(`${failed === 0 ? "all stories pass" : `${failed} stories fail`}, in ${Math.round((Date.now() - began) / 1_000)} s`);
