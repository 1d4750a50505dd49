import assert from "node:assert/strict";
import { follow, settle } from "../pages.mjs";

/** Texts of senders and users that would run if any page took them for markup. */
const CORPUS = ["<img src=x onerror=window.__ran=1>", "<script>window.__ran=1</script>", '"><svg onload=window.__ran=1>', "javascript:window.__ran=1", "{{constructor.constructor('window.__ran=1')()}}", "</textarea><iframe srcdoc='<script>parent.__ran=1</script>'>"];

export default {
  "nothing that users or senders write is run": async ({ page, go, server }) => {
    for (const [index, text] of CORPUS.entries()) {
      await server.send("POST", "instances", { orchestration: "greet", id: `xss-${index}`, input: { name: text, wait: true }, labels: { team: text.slice(0, 60) } });
      await server.send("POST", `instances/xss-${index}/pause`, { reason: text });
      await server.send("POST", "hooks/default/orders", { text });
      await server.send("POST", "recurring", { name: `xss-${index}`, cron_expr: "0 0 1 1 *", function: "echo", input: text, description: text });
      await server.send("PUT", `functions/xss-${index}`, { executor: "remote", description: text }, { "if-none-match": "*" });
    }
    await server.send("POST", "invocations", { function: "xss-0", key: "xss-call", input: CORPUS });
    const { items } = await server.send("POST", "work/fetch", { worker: "story", functions: ["xss-0"], wait_ms: 2_000 });
    await server.send("POST", "work/fail", { lease: items[0].lease, message: CORPUS.join(" "), code: "xss", retryable: false });
    const { recurring_actions: rows } = await server.send("GET", "recurring");
    const paths = ["", "instances?q=xss", "instances/xss-0", "instances/xss-1?tab=events", "instances/xss-2?tab=data", "instances/invoke:xss-call?tab=data", "schedules", `schedules/${rows.find((row) => row.name === "xss-0").id}`, "functions", "functions/xss-1", "webhooks?view=deliveries", "actions", `instances?q=${encodeURIComponent(CORPUS[0])}`];
    for (const path of paths) {
      await follow(page, path);
      await settle(page);
      assert.equal(await page.evaluate(() => window.__ran), undefined, path);
    }
    await go("webhooks/orders");
    await page.getByRole("row", { name: /routed/ }).first().click();
    await page.getByRole("dialog").getByRole("region", { name: "Body" }).waitFor();
    assert.equal(await page.evaluate(() => window.__ran), undefined);
  },
  "the keyboard is enough: search, go to a page, open a row": async ({ page }) => {
    await page.getByRole("heading", { name: "Home" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("order-1002");
    await page.getByRole("option", { name: /order-1002/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /order-1002/ }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByRole("heading", { name: "Schedules" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("New sch");
    await page.getByRole("option", { name: /New schedule/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByText("Next 10 times").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("grid", { name: "Schedules" }).focus();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Next 10 times" }).waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: "Schedules" }).waitFor();
  },
  "a tenant sees nothing of another, and the address keeps the tenant": async ({ page, go }) => {
    await go("instances?tenant=other");
    await page.getByText("Nothing has run yet").waitFor();
    await page.getByRole("link", { name: "Schedules" }).click();
    await page.getByText("Nothing is scheduled").waitFor();
    assert.match(page.url(), /tenant=other/);
  },
  "an instance that does not exist is an answer, not a crash": async ({ page, go }) => {
    await go("instances/nobody-has-this-id");
    await page.getByRole("alert").getByText("not-found", { exact: false }).waitFor();
    await go("no-such-page");
    await page.getByText("There is no such page").waitFor();
  },
  "the server is killed and comes back: a banner, then the page catches up": async ({ page, go, server }) => {
    await go("instances?q=story-after");
    await page.getByText("No instance matches this filter").waitFor();
    await server.kill();
    await page.getByText(/The connection to the server is lost/).waitFor();
    await server.run();
    await server.send("POST", "instances", { orchestration: "greet", id: "story-after-kill", input: { name: "Ada" } });
    await page.getByRole("link", { name: "story-after-kill" }).waitFor();
    await page.getByText(/The connection to the server is lost/).waitFor({ state: "hidden" });
  },
};
