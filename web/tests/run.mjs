// Runs the stories, each a person's errand on a page: node tests/run.mjs [part of a name]
import { readdir } from "node:fs/promises";
import { furnish } from "./furnish.mjs";
import { Browser, Server } from "./harness.mjs";

const [wanted = ""] = process.argv.slice(2);
const files = (await readdir(new URL("stories/", import.meta.url))).sort();
const stories = [];
for (const file of files) {
  for (const [name, run] of Object.entries((await import(`./stories/${file}`)).default)) stories.push({ name, run });
}

const server = await Server.start();
const browser = await Browser.start();
let failed = 0;

/** Runs a story on a page of its own; what went wrong, if anything did. A story that fails once is tried again, and reported. */
async function attempt(run) {
  let page;
  try {
    page = await browser.open(server.page);
    await run({ page, server, browser, go: (path) => page.goto(server.page + path) });
    await browser.close(page);
    return undefined;
  } catch (error) {
    await page?.screenshot({ path: `/tmp/segno-web-${failed}.png` }).catch(() => {});
    return error;
  }
}

try {
  await furnish(server.api);
  for (const { name, run } of stories.filter((story) => story.name.includes(wanted))) {
    const began = Date.now();
    const first = await attempt(run);
    const error = first && (await attempt(run));
    const verdict = error ? "FAIL " : first ? "FLAKY" : "ok   ";
    console.log(`${verdict} ${name} (${Date.now() - began} ms)`);
    if (first) console.log(String(first.stack ?? first).replace(/^/gm, "      "));
    if (error) failed += 1;
  }
} finally {
  await browser.stop();
  await server.stop();
}
if (failed > 0) process.exitCode = 1;
console.log(failed === 0 ? "all stories pass" : `${failed} stories fail`);
