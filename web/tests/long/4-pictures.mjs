// Compares pages with committed pictures. Fonts and versions of the browser draw differently, so that others than the recorded ones
// compare nothing. SEGNO_UPDATE_PICTURES=1 takes the pictures anew.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { furnish } from "../furnish.mjs";
import { Server } from "../harness.mjs";
import { follow, settle } from "../pages.mjs";

export const hasOwnServers = true;

const COMMITTED = new URL("../pictures/", import.meta.url);
const RECORD = new URL("made-with.json", COMMITTED);
const SIZE = { width: 1000, height: 640 };
/** Pages without ports, and without what differs from run to run other than in times and numbers. */
const PAGES = ["instances?q=status:paused", "schedules", "start?view=orchestration&name=greet", "dead-letters", "runbooks/guests?tab=edit", "dags/greetings?tab=graph", "sql"];
/** Times, numbers and outcomes are there and not drawn. */
const CALM = "time, .tabular-nums, [aria-label^='Last outcomes'] { visibility: hidden !important } * { caret-color: transparent !important }";
/** A channel may differ by this, and this share of all pixels may differ by more. */
const MOST_DIFFERENCE = 12;
const MOST_PIXELS = 0.001;

const isUpdate = process.env.SEGNO_UPDATE_PICTURES === "1";

/** The browser and the fonts that it draws with here. */
function drawnWith(browser) {
  const font = (family) => execFileSync("fc-match", ["-f", "%{family} %{style} %{fontversion}", family], { encoding: "utf8" });
  return { chromium: browser.chromium.version(), sans: font("sans-serif"), mono: font("monospace") };
}

/** The share of pixels that differ, found in an empty page of the browser. */
async function difference(canvas, one, other) {
  return canvas.evaluate(
    async ({ one, other, most }) => {
      const pixels = async (base64) => {
        const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
      };
      const [before, after] = [await pixels(one), await pixels(other)];
      if (before.width !== after.width || before.height !== after.height) return 1;
      let differing = 0;
      for (let at = 0; at < before.data.length; at += 4) {
        const differs = [0, 1, 2].some((channel) => Math.abs(before.data[at + channel] - after.data[at + channel]) > most);
        if (differs) differing += 1;
      }
      return differing / (before.data.length / 4);
    },
    { one: one.toString("base64"), other: other.toString("base64"), most: MOST_DIFFERENCE },
  );
}

async function take(page) {
  await page.addStyleTag({ content: CALM });
  await page.mouse.move(SIZE.width - 1, SIZE.height - 1);
  await page.evaluate(() => document.activeElement?.blur());
  await page.waitForTimeout(300);
  return page.screenshot();
}

export default {
  "pages look as in the committed pictures": async ({ browser }) => {
    const here = drawnWith(browser);
    const recorded = JSON.parse(await readFile(RECORD, "utf8").catch(() => "{}"));
    if (!isUpdate && JSON.stringify(here) !== JSON.stringify(recorded)) {
      console.log(`      not compared: the pictures are of ${JSON.stringify(recorded)}, here is ${JSON.stringify(here)}`);
      return;
    }
    await mkdir(COMMITTED, { recursive: true });
    const server = await Server.start();
    const canvas = await browser.chromium.newPage();
    const different = [];
    try {
      await furnish(server.api);
      for (const theme of ["light", "dark"]) {
        const page = await browser.open(server.page, { theme, ...SIZE });
        for (const path of PAGES) {
          await follow(page, path);
          await settle(page);
          const file = new URL(`${path.replace(/\W+/g, "-")}-${theme}.png`, COMMITTED);
          const picture = await take(page);
          if (isUpdate) {
            await writeFile(file, picture);
            continue;
          }
          const share = await difference(canvas, await readFile(file), picture);
          if (share <= MOST_PIXELS) continue;
          const seen = `/tmp/segno-web-${path.replace(/\W+/g, "-")}-${theme}.png`;
          await writeFile(seen, picture);
          different.push(`${path} in the ${theme} theme: ${(share * 100).toFixed(2)}% of the pixels differ, see ${seen}`);
        }
        await browser.close(page);
      }
      if (isUpdate) await writeFile(RECORD, `${JSON.stringify(here, null, 1)}\n`);
      assert.deepEqual(different, []);
    } finally {
      await canvas.close();
      await server.stop();
    }
  },
};
