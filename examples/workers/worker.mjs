#!/usr/bin/env node
// A complete Segno worker: SEGNO_KEY=segno_… node worker.mjs http://127.0.0.1:7070 [POOL]
//
// It runs the functions below, keeps their leases alive, and stops what is cancelled. Node (20 or newer) is enough.
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";

const SERVER = process.argv[2].replace(/\/$/, "");
const WORKER = `node-${hostname()}-${process.pid}`;
const [LEASE_MS, AT_ONCE] = [5_000, 4];

const FUNCTIONS = {
  "word-count": (text) => text.split(/\s+/).filter(Boolean).length,

  // Waits until a file is there: something that takes long. Leaves when the call is cancelled.
  "await-file": async (path, job) => {
    while (!job.stop.aborted) {
      const text = await readFile(path, "utf8").catch(() => null);
      if (text !== null) return text;
      job.progress = "still waiting";
      await pause(100);
    }
  },
};

// Repeats what the server does not answer, with growing pauses: by its lease an answer counts once.
async function post(verb, body) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${process.env.SEGNO_KEY ?? ""}` };
  const call = { method: "POST", headers, body: JSON.stringify(body) };
  for (let [ms, trouble] = [100]; ; ms = Math.min(2 * ms, 5_000)) {
    const response = await fetch(`${SERVER}/v1/work/${verb}`, call).catch((error) => void (trouble = error));
    const text = await response?.text().catch(() => null);
    if (response?.ok && text !== null) return text && JSON.parse(text);
    if (response?.status < 500) throw Object.assign(new Error(`${verb}: ${text}`), { status: response.status });
    console.error(`${SERVER}/v1/work/${verb}: ${trouble?.cause ?? text}; trying again`);
    await pause(ms);
  }
}

async function keepAlive(job, ended, stop) {
  while (await pause(LEASE_MS / 3, true, { signal: ended }).catch(() => false)) {
    try {
      const answer = await post("heartbeat", { lease: job.lease, extend_ms: LEASE_MS, progress: job.progress });
      job.lease = answer.lease ?? job.lease;
      if (answer.action === "cancel") return stop.abort();
    } catch (error) {
      if (error.status === 409) return stop.abort();
    }
  }
}

async function run(item) {
  const [ended, stop] = [new AbortController(), new AbortController()];
  const job = { lease: item.lease, progress: null, stop: stop.signal };
  const heart = keepAlive(job, ended.signal, stop);
  let [verb, answer] = ["complete", {}];
  try {
    answer.result = (await FUNCTIONS[item.function](item.input, job)) ?? null;
  } catch (error) {
    [verb, answer] = ["fail", { message: String(error) }];
  }
  ended.abort();
  await heart;
  if (!stop.signal.aborted) await post(verb, { lease: job.lease, ...answer });
}

async function work() {
  const functions = Object.keys(FUNCTIONS); // with a pool: those of it that this worker has
  const ask = { worker: WORKER, pool: process.argv[3], functions, lease_ms: LEASE_MS, wait_ms: 20_000 };
  while (true) {
    try {
      for (const item of (await post("fetch", ask)).items) await run(item);
    } catch (error) {
      console.error(`${error.message}; trying again`);
      await pause(1_000);
    }
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, work));
