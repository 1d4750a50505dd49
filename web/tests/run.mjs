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
try {
  await furnish(server.api);
  for (const { name, run } of stories.filter((story) => story.name.includes(wanted))) {
    const began = Date.now();
    let page;
    try {
      page = await browser.open(server.page);
      await run({ page, server, browser, go: (path) => page.goto(server.page + path) });
      await browser.close(page);
      console.log(`ok    ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name} (${Date.now() - began} ms)\n${String(error.stack ?? error).replace(/^/gm, "      ")}`);
      await page?.screenshot({ path: `/tmp/segno-web-${failed}.png` }).catch(() => {});
    }
  }
} finally {
  await browser.stop();
  await server.stop();
}
if (failed > 0) process.exitCode = 1;
console.log(failed === 0 ? "all stories pass" : `${failed} stories fail`);
