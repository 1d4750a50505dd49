// Measures the page in a browser, against the server that is in $SEGNO_BIN: node tests/figures.mjs [name…] [--minutes N]
//   first-load   bytes over the wire and time until a person can act, with the processor at a quarter of its speed
//   rows         scrolling through a list of 100,000 instances: frames that came late
//   timeline     an instance of 50,000 events: until its first lane is drawn, and frames while it is panned and zoomed
//   memory       live events for N minutes (10): memory of the page after garbage collection, at the start and at the end
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { forward } from "./built.mjs";
import { furnish } from "./furnish.mjs";
import { Browser, Server } from "./harness.mjs";

const words = process.argv.slice(2);
const minutes = Number(words[words.indexOf("--minutes") + 1] || 10);
const names = words.filter((word, index) => /^[a-z]/.test(word) && words[index - 1] !== "--minutes");

const SLOWER = 4;
const ROWS = 100_000;
const EVENTS = 50_000;
const PATIENCE_MS = 120_000;
/** A frame that took longer is one that a screen of 60 Hz has left out. */
const DROPPED_MS = 1_000 / 60 * 1.5;
const START_MS = new Date("2026-01-05T08:00:00Z").getTime();

const print = (name, value) => console.log(`${name.padEnd(58)} ${value}`);
const ms = (value) => `${Math.round(value)} ms`;
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Notes the length of each frame while `work` runs. */
async function frames(page, work) {
  await page.evaluate(() => {
    window.frameTimes = [];
    let last = performance.now();
    const note = (now) => {
      window.frameTimes.push(now - last);
      last = now;
      window.frameRequest = requestAnimationFrame(note);
    };
    window.frameRequest = requestAnimationFrame(note);
  });
  await work();
  const times = await page.evaluate(() => {
    cancelAnimationFrame(window.frameRequest);
    return window.frameTimes.slice(1);
  });
  const sorted = [...times].sort((a, b) => a - b);
  const dropped = times.filter((time) => time > DROPPED_MS).length;
  return { text: `${times.length} frames, ${dropped} late (${((dropped / times.length) * 100).toFixed(1)}%), p99 ${ms(sorted[Math.floor(sorted.length * 0.99)])}, longest ${ms(sorted.at(-1))}` };
}

async function firstLoad(browser) {
  const server = await Server.start();
  try {
    await furnish(server.api);
    const loads = [];
    for (let run = 0; run < 5; run += 1) {
      const page = await browser.open("about:blank");
      const client = await page.context().newCDPSession(page);
      await client.send("Network.enable");
      await client.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
      let bytes = 0;
      const isFile = new Set();
      client.on("Network.responseReceived", ({ requestId, response }) => !response.url.includes("/v1/") && isFile.add(requestId));
      client.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => (bytes += isFile.has(requestId) ? encodedDataLength : 0));
      const began = performance.now();
      await page.goto(server.page, { waitUntil: "commit" });
      await page.getByRole("link", { name: /failed in the last hour/ }).waitFor({ timeout: PATIENCE_MS });
      const shown = performance.now() - began;
      // Interactive: the page answers a key press within a frame or two.
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox").waitFor();
      loads.push({ bytes, shown, ready: performance.now() - began });
      await page.context().close();
    }
    print("first load of Home: files, compressed", `${Math.round(median(loads.map((load) => load.bytes)) / 1_000)} kB`);
    print(`until its figures are shown, ${SLOWER}x slower processor`, ms(median(loads.map((load) => load.shown))));
    print(`until it has answered a key, ${SLOWER}x slower processor`, ms(median(loads.map((load) => load.ready))));
  } finally {
    await server.stop();
  }
}

async function rows(browser) {
  const data = await mkdtemp(join(tmpdir(), "segno-figures-"));
  const binary = process.env.SEGNO_BIN ?? new URL("../../target/debug/segno", import.meta.url).pathname;
  try {
    const fill = spawn(process.env.SEGNO_BENCH ?? binary, [...(process.env.SEGNO_BENCH ? [] : ["bench"]), "sql", "fill", "--store", `segno:${data}/store`, "--instances", String(ROWS)], { stdio: "ignore" });
    const [code] = await once(fill, "exit");
    if (code !== 0) throw new Error(`filling the store ended with ${code}`);
    const server = await Server.start({ data });
    try {
      const page = await browser.open(`${server.page}instances`);
      const list = page.getByRole("grid", { name: "Instances" });
      await list.waitFor({ timeout: PATIENCE_MS });
      let shown = 0;
      const { text } = await frames(page, async () => {
        const began = performance.now();
        while (shown < ROWS && performance.now() - began < 600_000) {
          shown = await list.evaluate(async (grid) => {
            // 20 rows a frame, as a person who drags the bar does.
            for (let step = 0; step < 60; step += 1) {
              grid.scrollTop += 20 * 34;
              await new Promise(requestAnimationFrame);
            }
            return Number(grid.getAttribute("aria-rowcount")) - 1;
          });
        }
      });
      print(`scroll through ${shown.toLocaleString("en-US")} instances, loading pages`, text);
      const again = await frames(page, () =>
        list.evaluate(async (grid) => {
          for (let at = grid.scrollHeight; at > 0; at -= grid.scrollHeight / 600) {
            grid.scrollTop = at;
            await new Promise(requestAnimationFrame);
          }
        }),
      );
      print("back to the first of them, all loaded", again.text);
      await browser.close(page);
    } finally {
      await server.stop();
    }
  } finally {
    await rm(data, { recursive: true, force: true });
  }
}

/** A history of activities with waits and failed attempts, as an instance with many steps has. */
function history(count) {
  const events = [{ id: 1, kind: "OrchestrationStarted", data: { name: "long", input: { n: count } } }];
  let at = START_MS;
  while (events.length < count) {
    const source = events.length + 1;
    at += 40;
    events.push({ id: source, kind: "ActivityScheduled", at, data: { name: "function", input: { function: ["charge", "ship", "mail"][source % 3], input: { order: source } } } });
    at += 20 + (source % 7) * 30;
    if (source % 50 === 0) {
      events.push({ id: events.length + 1, kind: "ActivityAttemptFailed", at, data: { source, attempt: 1, retry_at_ms: at + 400, failure: { category: "timeout", code: "bank-timeout", message: "the bank timed out" } } });
      at += 450;
    }
    events.push({ id: events.length + 1, kind: "ActivityCompleted", at, data: { source, result: { receipt: `R-${source}` } } });
  }
  return events.map((event) => ({ ...event, at: new Date(event.at ?? START_MS).toISOString() }));
}

/** A front of a server that answers for one instance of many events itself, and forwards all else. */
async function frontWithHistory(server) {
  const events = history(EVENTS);
  const row = { id: "figures-long", namespace: "default", tenant: "default", orchestration: "long", version: "1.0.0", status: "completed", execution: 1, revision: 1, created_at: events[0].at, updated_at: events.at(-1).at, completed_at: events.at(-1).at, labels: {}, result: null };
  const front = createServer((incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url, server);
    const part = /^\/v1\/instances\/figures-long(\/[a-z]+)?$/.exec(pathname);
    if (!part) return forward(server, incoming, outgoing);
    const answers = {
      "": () => row,
      "/history": () => {
        const after = Number(searchParams.get("after") ?? 0);
        const page = events.slice(after, after + Number(searchParams.get("limit")));
        return { events: page, ...(after + page.length < events.length ? { next_after: page.at(-1).id } : {}) };
      },
      "/tree": () => ({ nodes: [row] }),
      "/executions": () => ({ executions: [{ execution: 1, status: "completed", started_at: row.created_at, completed_at: row.completed_at, events: EVENTS }] }),
    };
    const answer = answers[part[1] ?? ""]?.() ?? {};
    outgoing.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  await new Promise((resolve) => front.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${front.address().port}/`, close: () => { front.close(); front.closeAllConnections(); } };
}

async function timeline(browser) {
  const server = await Server.start();
  const front = await frontWithHistory(server.origin);
  try {
    const first = [];
    const all = [];
    let page;
    for (let run = 0; run < 3; run += 1) {
      await page?.context().close();
      page = await browser.open(`${front.url}start`);
      const began = performance.now();
      await page.goto(`${front.url}instances/figures-long`, { waitUntil: "commit" });
      await page.locator("[data-lane]").first().waitFor({ timeout: PATIENCE_MS });
      first.push(performance.now() - began);
      await page.getByText(`${EVENTS} of ${EVENTS}`).waitFor({ timeout: PATIENCE_MS });
      all.push(performance.now() - began);
    }
    const grid = page.getByRole("grid", { name: "Timeline" });
    const box = await grid.boundingBox();
    print(`timeline of ${EVENTS.toLocaleString("en-US")} events: until its first lanes are drawn`, ms(median(first)));
    print("until all of its events are drawn", ms(median(all)));
    await grid.focus();
    for (let step = 0; step < 12; step += 1) await page.keyboard.press("+");
    const pan = await frames(page, async () => {
      for (let drag = 0; drag < 10; drag += 1) {
        await page.mouse.move(box.x + box.width - 20, box.y + 200);
        await page.mouse.down();
        await page.mouse.move(box.x + 300, box.y + 200, { steps: 40 });
        await page.mouse.up();
      }
    });
    print("pan by dragging, zoomed in", pan.text);
    const scroll = await frames(page, () =>
      grid.evaluate(async (element) => {
        for (let step = 0; step < 600; step += 1) {
          element.scrollTop += 10 * 28;
          await new Promise(requestAnimationFrame);
        }
      }),
    );
    print("scroll, ten lanes a frame", scroll.text);
    await browser.close(page);
  } finally {
    front.close();
    await server.stop();
  }
}

async function memory(browser) {
  const server = await Server.start();
  try {
    const page = await browser.open(`${server.page}instances`);
    await page.waitForFunction(() => document.documentElement.dataset.live === "on");
    const client = await page.context().newCDPSession(page);
    const used = async () => {
      await client.send("HeapProfiler.collectGarbage");
      const { usedSize } = await client.send("Runtime.getHeapUsage");
      const { nodes } = await client.send("Memory.getDOMCounters");
      return { megabytes: usedSize / 1e6, nodes };
    };
    const until = Date.now() + minutes * 60_000;
    let started = 0;
    const live = async () => {
      for (let n = 0; n < 20; n += 1) {
        started += 1;
        await server.send("POST", "instances", { orchestration: "greet", id: `live-${started}`, input: { name: "Ada" } });
      }
    };
    await live();
    await page.getByRole("link", { name: "live-20" }).waitFor();
    const first = await used();
    const samples = [first.megabytes];
    while (Date.now() < until) {
      await live();
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      if (started % 600 === 0) samples.push((await used()).megabytes);
    }
    const last = await used();
    print(`memory of the list of instances, ${minutes} minutes, ${started.toLocaleString("en-US")} live instances`, `${first.megabytes.toFixed(1)} MB, then ${last.megabytes.toFixed(1)} MB (most ${Math.max(...samples, last.megabytes).toFixed(1)}); ${first.nodes} nodes, then ${last.nodes}`);
    await browser.close(page);
  } finally {
    await server.stop();
  }
}

const FIGURES = { "first-load": firstLoad, rows, timeline, memory };
const unknown = names.filter((name) => FIGURES[name] === undefined);
if (unknown.length > 0) throw new Error(`unknown: ${unknown.join(", ")}; there are ${Object.keys(FIGURES).join(", ")}`);
const browser = await Browser.start();
try {
  for (const [name, measure] of Object.entries(FIGURES)) if (names.length === 0 || names.includes(name)) await measure(browser);
} finally {
  await browser.stop();
}
