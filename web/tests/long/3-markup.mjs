import assert from "node:assert/strict";
import { PAGES, follow, settle } from "../pages.mjs";

/** What would run if a page, an attribute, a link, a style or a template took it for more than text. */
const CORPUS = [
  "<img src=x onerror=window.__ran=1>",
  "<script>window.__ran=1</script>",
  '"><svg onload=window.__ran=1>',
  "' onmouseover='window.__ran=1",
  "javascript:window.__ran=1",
  "data:text/html,<script>parent.__ran=1</script>",
  "{{constructor.constructor('window.__ran=1')()}}",
  "${window.__ran=1}",
  "</textarea><iframe srcdoc='<script>parent.__ran=1</script>'>",
  "</script><script>window.__ran=1</script>",
  "<style>*{background:url(https://elsewhere.example/x)}</style>",
  "<a href=javascript:window.__ran=1>click</a>",
  "<math><mtext><option><FAKEFAKE><style><img src=x onerror=window.__ran=1>",
  "\u202e<b>turned\u0000round</b>",
];

const EVERYTHING = CORPUS.join("\n");
const YAML = (text) => JSON.stringify(text);

/** Puts the corpus into every text that a user or a sender controls. */
async function write(server) {
  const fresh = { "if-none-match": "*" };
  for (const [index, text] of CORPUS.entries()) {
    const clean = text.replaceAll("\u0000", "");
    await server.send("POST", "instances", { orchestration: "greet", id: `m-${index}`, input: { name: clean, wait: true, [clean]: clean }, labels: { team: clean.slice(0, 60) } });
    await server.send("POST", `instances/m-${index}/pause`, { reason: clean });
    await server.send("POST", "hooks/default/orders", { text: clean, [clean]: [clean] });
    await server.send("POST", "recurring", { name: `m-${index}`, cron_expr: "0 0 1 1 *", function: "echo", input: clean, description: clean, labels: { team: clean.slice(0, 60) } });
    await server.send("PUT", `functions/m-${index}`, { executor: "remote", description: clean }, fresh);
    await server.send("PUT", `saved/m-${index}`, { kind: "view", page: "instances", text: clean.replaceAll("\n", " ") }).catch(() => {});
  }
  const plain = EVERYTHING.replaceAll("\u0000", "");
  await fetch(`${server.api}/v1/hooks/default/orders`, { method: "POST", headers: { "content-type": "text/html" }, body: plain });
  await fetch(`${server.api}/v1/hooks/default/orders`, { method: "POST", headers: { "content-type": "image/svg+xml" }, body: '<svg xmlns="http://www.w3.org/2000/svg" onload="window.__ran=1"/>' });
  await server.send("POST", "runbooks", { yaml_content: `name: markup\ndescription: ${YAML(plain)}\ndata_source: {type: manual, primary_key: Guest}\nphases:\n  - name: first\n    offset: T-0\n    steps:\n      - {name: greet, worker_id: dev, function: greet, params: {name: "{{Guest}}"}}\n` });
  const batch = await server.send("POST", "batches", { runbook: "markup", members: CORPUS.map((text) => ({ Guest: text.replaceAll("\u0000", ""), Note: plain })) });
  await server.send("POST", `batches/${batch.id}/requests`, { action: "advance" }, { "idempotency-key": "markup" });
  await server.send("POST", "dags", { document: `name: markup\ndescription: ${YAML(plain)}\ntasks:\n  - {key: only, function: echo, input: ${YAML(plain.replaceAll("{{", "{ {"))}}\n` });
  const run = await server.send("POST", "runs", { dag: "markup", run_key: "markup-1" });
  await server.send("POST", "invocations", { function: "m-0", key: "markup-call", input: CORPUS.map((text) => text.replaceAll("\u0000", "")) });
  const { items } = await server.send("POST", "work/fetch", { worker: "markup", functions: ["m-0"], wait_ms: 2_000 });
  await server.send("POST", "work/fail", { lease: items[0].lease, message: plain, code: "markup", retryable: false, details: { html: plain } }).catch(() => server.send("POST", "work/fail", { lease: items[0].lease, message: plain, code: "markup", retryable: false }));
  const { recurring_actions: rows } = await server.send("GET", "recurring");
  return { batch: batch.id, run: run.id, schedule: rows.find((row) => row.name === "m-0").id };
}

async function nothingRan(page, path) {
  assert.equal(await page.evaluate(() => window.__ran), undefined, path);
}

export default {
  "nothing that users or senders write runs on any page, tab or dialog": async ({ page, server }) => {
    const { batch, run, schedule } = await write(server);
    const one = "instances/m-0";
    const paths = [
      ...PAGES, one, ...["events", "data", "children", "logs", "executions", "audit"].map((tab) => `${one}?tab=${tab}`),
      "instances/invoke:markup-call", "instances/invoke:markup-call?tab=data", "instances/invoke:markup-call?tab=events", "instances?q=m-", `schedules/${schedule}`, "functions/m-1", "functions/m-0", "webhooks?view=deliveries", "webhooks/orders?tab=test",
      "runbooks?view=runbooks", "runbooks/markup", "runbooks/markup?tab=edit", "runbooks/markup?tab=source", `batches/${batch}`, "dags?view=dags", "dags/markup", "dags/markup?tab=graph", `runs/${run}`, `runs/${run}?tab=gantt`,
      `sql?q=${encodeURIComponent("SELECT id, labels, pause_reason FROM instances")}`, ...CORPUS.map((text) => `instances?q=${encodeURIComponent(text)}`), ...CORPUS.map((text) => `schedules?q=${encodeURIComponent(text)}`), ...CORPUS.slice(0, 4).map((text) => `instances/${encodeURIComponent(text.replaceAll("\u0000", ""))}`), ...CORPUS.slice(0, 4).map((text) => `instances?tenant=${encodeURIComponent(text.replaceAll("\u0000", ""))}`),
    ];
    for (const path of paths) {
      await follow(page, path);
      await settle(page);
      await nothingRan(page, path);
    }
    await follow(page, "instances/m-0");
    await settle(page);
    await page.getByRole("button", { name: "Copy the id" }).hover();
    await follow(page, "webhooks/orders");
    await settle(page);
    const deliveries = page.getByRole("grid", { name: "Deliveries" }).getByRole("row");
    for (let row = 1; row <= 3; row += 1) {
      await deliveries.nth(row).click();
      await page.getByRole("dialog").getByRole("button", { name: "Close" }).first().click();
      await nothingRan(page, `delivery ${row}`);
    }
    await follow(page, `batches/${batch}`);
    await page.getByRole("button", { name: /greet: / }).first().click();
    await page.getByRole("complementary").waitFor();
    await follow(page, "sql");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("tab", { name: "Chart" }).click();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("m-");
    await page.getByRole("option", { name: /m-0/ }).first().waitFor();
    await nothingRan(page, "palette");
  },
  "a violation of the policy is noticed, also on a page that was left": async ({ browser, server }) => {
    const page = await browser.open(server.page);
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.__ran = 1";
      document.body.append(script);
    });
    await page.goto(`${server.page}instances`);
    assert.equal(await page.evaluate(() => window.__ran), undefined);
    await assert.rejects(browser.close(page), /policy: script-src/);
  },
};
