// Furnishes a server with something of everything: node tests/furnish.mjs http://127.0.0.1:7070
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const repository = new URL("../../", import.meta.url);

export async function furnish(server, { members = 40 } = {}) {
  const send = sender(server);
  await functions(send);
  await instances(send);
  await schedules(send);
  await hooks(send);
  await runbooks(send, members);
  await dags(send);
  await work(send);
}

function sender(server) {
  return async (method, path, body, headers = {}) => {
    const answer = await fetch(`${server}/v1/${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok && answer.status !== 409 && answer.status !== 412) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
}

async function functions(send) {
  const fresh = { "if-none-match": "*" };
  const retry = { attempts: 3, initial_delay: "200ms" };
  await send("PUT", "functions/charge", { executor: "remote", timeout: "1m", retry, description: "Charges a card" }, fresh);
  await send("PUT", "functions/ship", { executor: "remote", timeout: "5m", retry: { attempts: 5, initial_delay: "30m", max_delay: "1h" }, description: "Hands a parcel to the carrier" }, fresh);
  await send("PUT", "functions/resize", { executor: "remote", timeout: "5m", description: "Nobody runs this one" }, fresh);
}

async function instances(send) {
  await send("POST", "instances", { orchestration: "greet", id: "order-1001", input: { name: "Ada", wait: true }, labels: { team: "eu" }, on_conflict: "use_existing" });
  await send("POST", "instances", { orchestration: "greet", id: "order-1002", input: { name: "Grace", wait: true }, labels: { team: "us" }, on_conflict: "use_existing" });
  await send("POST", "instances", { orchestration: "greet", id: "order-1003", input: { name: "Alan" }, labels: { team: "eu" }, on_conflict: "use_existing" });
  await send("POST", "instances/order-1002/pause", { reason: "The customer asked to wait until Monday" });
  for (let n = 1; n <= 12; n += 1) await send("POST", "invocations", { function: "charge", key: `charge-${n}`, input: { order: 1000 + n, cents: n * 725 }, labels: { team: n % 2 ? "eu" : "us" } });
  await send("POST", "invocations", { function: "ship", key: "ship-1", input: { order: 1001 } });
  for (let n = 1; n <= 3; n += 1) await send("POST", "invocations", { function: "resize", key: `resize-${n}`, input: { picture: n } });
  for (let n = 1; n <= 10; n += 1) await send("POST", "invocations", { function: "echo", key: `echo-${n}`, input: { n } });
}

async function schedules(send) {
  if ((await send("GET", "recurring")).recurring_actions.length > 0) return;
  await send("POST", "recurring", { name: "morning-report", cron_expr: "0 9 * * MON-FRI", timezone: "Europe/Berlin", function: "echo", input: { report: "daily" }, description: "Report for the sales team", labels: { team: "eu" } });
  await send("POST", "recurring", { name: "heartbeat", every: "5s", function: "greet", input: "Ada" });
  await send("POST", "recurring", { name: "night-clean-up", cron_expr: "30 2 * * *", timezone: "America/New_York", function: "echo", input: null });
  const paused = await send("POST", "recurring", { name: "monthly-invoice", cron_expr: "0 6 1 * *", function: "charge", input: {} });
  await send("POST", `recurring/${paused.recurring_id}/pause`, { note: "Prices change in March" });
}

async function hooks(send) {
  await send("PUT", "hooks/default/orders", { function: "echo", verification: "none" }, { "if-none-match": "*" });
  for (let n = 1; n <= 4; n += 1) await send("POST", "hooks/default/orders", { order: 1000 + n, items: ["tea", "cups"] });
}

async function runbooks(send, members) {
  const text = await readFile(fileURLToPath(new URL("examples/runbooks/guests.yaml", repository)), "utf8");
  await send("POST", "runbooks", { yaml_content: text });
  if ((await send("GET", "batches")).batches.length > 0) return;
  const rows = Array.from({ length: members }, (_, n) => ({ Guest: `Guest ${n + 1}`, Table: ["oak", "elm", "ash"][n % 3] }));
  const batch = await send("POST", "batches", { runbook: "guests", members: rows });
  await send("POST", `batches/${batch.id}/requests`, { action: "advance" }, { "idempotency-key": "furnish-advance" });
  await send("POST", "batches", { runbook: "guests", members: rows.slice(0, 3) });
}

async function dags(send) {
  const document = await readFile(fileURLToPath(new URL("examples/dags/greetings.yaml", repository)), "utf8");
  await send("POST", "dags", { document });
  await send("POST", "runs", { dag: "greetings", partition: "2026-01-05", run_key: "furnish-1" });
  await send("POST", "runs", { dag: "greetings", partition: "2026-01-06", run_key: "furnish-2" });
}

/** A worker for a moment: most charges succeed, some fail for good, and no parcel is taken at first. */
async function work(send) {
  for (let round = 0; round < 30; round += 1) {
    const { items } = await send("POST", "work/fetch", { worker: "till-7", functions: ["charge", "ship"], max_items: 10, wait_ms: 3_000 });
    if (items.length === 0) return;
    for (const item of items) await answer(send, item);
  }
}

async function answer(send, { lease, attempt, function: name, input }) {
  if (name === "ship") {
    await send("POST", "work/fail", { lease, message: "the carrier does not answer", code: "carrier-away" });
  } else if (input?.order % 4 === 0) {
    await send("POST", "work/fail", { lease, message: "the card is declined", code: "card-declined", retryable: false });
  } else if (input?.order % 4 === 1) {
    await send("POST", "work/fail", { lease, message: "the bank timed out", code: "bank-timeout", category: "timeout", details: { gateway: `gateway-${attempt}`, seconds: 30 } });
  } else {
    await send("POST", "work/complete", { lease, result: { receipt: `R-${input?.order}` } });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await furnish(process.argv[2] ?? "http://127.0.0.1:7070");
