import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { furnish } from "../furnish.mjs";
import { Server } from "../harness.mjs";
import { follow, pagesOf, settle } from "../pages.mjs";

export const hasOwnServers = true;

const AXE = await readFile(new URL("../../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
/** Lists draw as many rows as there is room for, all alike: a low window shows each kind of row, and fewer of them. */
const HEIGHT = 480;

/** Rules whose findings depend on colours: all that a theme changes. */
const COLOURS = ["color-contrast", "link-in-text-block"];

/** What axe finds serious or worse, by all rules or by some. */
async function findings(page, { rules, isFirst }) {
  const { violations } = await page.evaluate(
    ({ only, exclude }) => window.axe.run({ exclude }, { resultTypes: ["violations"], ...(only ? { runOnly: { type: "rule", values: only } } : {}) }),
    { only: rules, exclude: isFirst ? [] : ["nav[aria-label=Pages]"] },
  );
  return violations.filter((each) => each.impact === "serious" || each.impact === "critical").flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.target} ${node.failureSummary}`));
}

/** Changes the theme of the system, which the page follows, and waits until it is drawn. */
async function show(page, colorScheme) {
  await page.emulateMedia({ colorScheme });
  await page.waitForFunction((wanted) => document.documentElement.classList.contains("dark") === (wanted === "dark"), colorScheme);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** What axe finds on all pages. The bar with the links of all pages is looked at on the first of them. */
async function findingsOfAll(page, paths) {
  const all = [];
  for (const path of paths) {
    await follow(page, path);
    await settle(page);
    const look = async (theme, rules) => {
      for (const finding of await findings(page, { rules, isFirst: path === paths[0] })) all.push(`${theme} /${path} ${finding}`);
    };
    await look("light");
    // The document is the same in the other theme, only its colours differ.
    await show(page, "dark");
    await look("dark", COLOURS);
    await show(page, "light");
  }
  return all;
}

export default {
  "no page has a serious finding of axe, in both themes": async ({ browser }) => {
    const server = await Server.start();
    try {
      await furnish(server.api);
      const page = await browser.open(server.page, { height: HEIGHT });
      await page.evaluate(AXE);
      assert.deepEqual(await findingsOfAll(page, await pagesOf(server)), []);
      await browser.close(page);
    } finally {
      await server.stop();
    }
  },
};
