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
let number = Date.now(); // an exchange that is repeated keeps its number
const jobs = new Set(); // those that run now

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

// Answers calls and gets the next ones. What the server does not answer is repeated, with growing pauses.
async function exchange(answers, fetching) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${process.env.SEGNO_KEY ?? ""}` };
  const body = JSON.stringify({ worker: WORKER, number: number++, answers, ...fetching });
  for (let [ms, trouble] = [100]; ; ms = Math.min(2 * ms, 5_000)) {
    const sent = fetch(`${SERVER}/v1/work/exchange`, { method: "POST", headers, body });
    const response = await sent.catch((error) => void (trouble = error));
    const text = await response?.text().catch(() => null);
    if (response?.ok && text !== null) return JSON.parse(text);
    console.error(`${SERVER}: ${trouble?.cause ?? text}; trying again`);
    await pause(response?.status < 500 ? 1_000 : ms);
    if (response?.status < 500) return { outcomes: [], items: [] };
  }
}

// Extends the leases of all jobs that run, in one exchange, and stops those whose answers are not wanted any more.
async function keepAlive() {
  while (await pause(LEASE_MS / 3, true)) {
    const beating = [...jobs];
    const beats = beating.map(({ lease, progress }) => ({ heartbeat: { lease, progress, extend_ms: LEASE_MS } }));
    const { outcomes } = beats.length > 0 ? await exchange(beats) : { outcomes: [] };
    outcomes.forEach((outcome, at) => {
      beating[at].lease = outcome.lease ?? beating[at].lease;
      if (outcome.status === "cancel" || outcome.problem?.status === 409) beating[at].abort();
    });
  }
}

async function run(item) {
  const stop = new AbortController();
  const job = { lease: item.lease, progress: null, stop: stop.signal, abort: () => stop.abort() };
  jobs.add(job);
  let [verb, answer] = ["complete", {}];
  try {
    answer.result = (await FUNCTIONS[item.function](item.input, job)) ?? null;
  } catch (error) {
    [verb, answer] = ["fail", { message: String(error) }];
  }
  jobs.delete(job);
  return stop.signal.aborted ? [] : [{ [verb]: { lease: job.lease, ...answer } }];
}

async function work() {
  const functions = Object.keys(FUNCTIONS); // with a pool: those of it that this worker has
  const ask = { pool: process.argv[3], functions, max_items: 1, lease_ms: LEASE_MS, wait_ms: 20_000 };
  let got = { items: [] };
  while (true) got = await exchange((await Promise.all(got.items.map(run))).flat(), ask);
}

await Promise.all([keepAlive(), ...Array.from({ length: AT_ONCE }, work)]);
