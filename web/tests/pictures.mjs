// Makes the pictures of the guide: node tests/pictures.mjs. With a directory, pictures of every page in both themes go there:
//   node tests/pictures.mjs all /tmp/pages
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { furnish } from "./furnish.mjs";
import { Browser, Server } from "./harness.mjs";

const GUIDE = fileURLToPath(new URL("../../docs/guide/pictures/", import.meta.url));
/** Charts and the timeline of a demo have something on them after so long. */
const LIVED_MS = 130_000;

const PICTURES = [
  { name: "home", path: "", theme: "light" },
  { name: "instance", path: "instances/order-1", theme: "light" },
  { name: "instances-dark", path: "instances", theme: "dark" },
];

const PAGES = ["", "instances", "instances?view=counts", "instances/order-1001", "instances/order-1001?tab=events", "instances/invoke:charge-1", "instances/invoke:charge-4?tab=data", "start", "schedules", "timers", "actions", "webhooks", "webhooks/orders", "functions", "functions/charge", "workers", "dead-letters", "runbooks", "runbooks/guests?tab=edit", "batches/1", "batches/1?tab=steps", "dags", "dags/greetings?tab=graph", "sql", "admin", "admin?tab=store", "admin?tab=versions", "admin?tab=tenants", "admin?tab=settings", "admin?tab=sessions", "admin?tab=audit"];

async function take(browser, server, { name, path, theme, directory, tenant }) {
  const url = new URL(server.page + path);
  if (tenant) url.searchParams.set("tenant", tenant);
  const page = await browser.open(url.href, { theme });
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForFunction(() => document.querySelector('[aria-label="Loading"]') === null);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${directory}/${name}.png` });
  await browser.close(page);
}

const [mode = "guide", directory = GUIDE] = process.argv.slice(2);
await mkdir(directory, { recursive: true });
const server = await Server.start({ demo: mode === "guide" });
const browser = await Browser.start();
try {
  if (mode === "guide") {
    await new Promise((resolve) => setTimeout(resolve, LIVED_MS));
    for (const picture of PICTURES) await take(browser, server, { ...picture, directory, tenant: "demo" });
  } else {
    await furnish(server.api);
    for (const theme of ["light", "dark"]) {
      for (const path of PAGES) await take(browser, server, { name: `${path.replace(/\W+/g, "-") || "home"}-${theme}`, path, theme, directory });
    }
  }
} finally {
  await browser.stop();
  await server.stop();
}
