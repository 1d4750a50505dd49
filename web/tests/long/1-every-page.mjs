import assert from "node:assert/strict";
import { PAGES, follow, pagesOf, settle } from "../pages.mjs";

/** Pages that show what is stored, and so have a state for nothing. */
const LISTS = ["instances", "schedules", "timers", "actions", "webhooks", "workers", "dead-letters", "runbooks", "runbooks?view=runbooks", "dags", "dags?view=dags", "dags?view=backfills"];
const EMPTY = /Nothing|No |not run yet|Nothing is wrong/;

export default {
  "every page opens by its address, and Back and Forward return to it": async ({ page, go }) => {
    const titles = new Map();
    for (const path of PAGES) {
      await go(path);
      await settle(page);
      titles.set(path, await page.getByRole("heading", { level: 1 }).innerText());
    }
    await go(PAGES[0]);
    await settle(page);
    for (const path of PAGES.slice(1)) {
      await follow(page, path);
      await settle(page);
    }
    for (const path of PAGES.slice(0, -1).reverse()) {
      await page.goBack();
      await page.waitForFunction((title) => document.querySelector("h1")?.innerText === title, titles.get(path));
    }
    for (const path of PAGES.slice(1)) {
      await page.goForward();
      await page.waitForFunction((title) => document.querySelector("h1")?.innerText === title, titles.get(path));
    }
  },
  "an empty tenant has words for it on every list": async ({ page, go }) => {
    for (const path of LISTS) {
      await go(`${path}${path.includes("?") ? "&" : "?"}tenant=empty`);
      await settle(page);
      await page.locator("main").getByText(EMPTY).first().waitFor();
      assert.equal(await page.getByRole("alert").count(), 0, path);
    }
  },
  "a request that fails is an error with a way to try again, on every list": async ({ page, go }) => {
    const isRead = (url) => url.pathname.startsWith("/v1/") && !/^\/v1\/(me|events)$/.test(url.pathname);
    for (const path of [...LISTS, "instances/order-1001", "functions/charge", "batches/1", "dags/greetings", "admin"]) {
      const problem = JSON.stringify({ code: "internal", title: "Something went wrong", detail: "a story broke this request", status: 500 });
      await page.route(isRead, (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: problem }));
      await go(path);
      const alerts = page.locator("main").getByRole("alert");
      await alerts.first().getByText("a story broke this request").waitFor({ timeout: 20_000 });
      await settle(page);
      await page.unroute(isRead);
      for (let left = await alerts.count(); left > 0; left = await alerts.count()) {
        await alerts.first().getByRole("button", { name: "Try again" }).click();
        await page.waitForFunction((before) => document.querySelectorAll("main [role=alert]").length < before, left);
      }
    }
  },
  "what takes long shows that it is loading": async ({ page, go }) => {
    const isRead = (url) => url.pathname.startsWith("/v1/") && !/^\/v1\/(me|events)$/.test(url.pathname);
    for (const path of LISTS) {
      let release;
      const held = new Promise((resolve) => (release = resolve));
      await page.route(isRead, async (route) => {
        await held;
        await route.continue().catch(() => {});
      });
      await go(path);
      await page.getByRole("status", { name: "Loading" }).first().waitFor();
      release();
      await settle(page);
      await page.unroute(isRead);
    }
  },
  "no page is wider than a phone": async ({ browser, server }) => {
    const page = await browser.open(server.page, { width: 390 });
    for (const path of await pagesOf(server)) {
      await follow(page, path);
      await settle(page);
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
      assert.ok(wide <= room, `/${path} is ${wide} wide`);
    }
    await browser.close(page);
  },
};
