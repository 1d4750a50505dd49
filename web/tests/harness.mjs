// What stories run on: a real server on a store of its own, and a browser that counts what must not happen.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { serve } from "./built.mjs";

const BINARY = process.env.SEGNO_BIN ?? new URL("../../target/debug/segno", import.meta.url).pathname;
/** Files to serve in place of those in the binary. */
const DIST = process.env.SEGNO_DIST;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const READY_MS = 20_000;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** The first key, which is written a moment after the server has begun to answer. */
async function keyIn(path) {
  const until = Date.now() + READY_MS;
  while (Date.now() < until) {
    const text = await readFile(path, "utf8").catch(() => "");
    if (text.endsWith("\n")) return text.trim();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`there is no key in ${path}`);
}

export class Server {
  /** A server on a store of its own, or on what `data` has: open, or with keys; `set` has settings of its own. */
  static async start({ keys = false, demo = false, set = {}, data } = {}) {
    const server = new Server();
    server.port = await freePort();
    server.api = `http://127.0.0.1:${server.port}`;
    server.data = data ?? (await mkdtemp(join(tmpdir(), "segno-web-")));
    const settings = Object.entries(set).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
    const place = ["--listen", `127.0.0.1:${server.port}`];
    server.arguments = keys
      ? ["serve", ...place, "--store", `segno:${server.data}/store`, "--first-key-file", `${server.data}/key`, ...settings]
      : ["dev", ...place, "--data", `${server.data}/store`, ...(demo ? [] : ["--without-demo"]), ...settings];
    await server.run();
    if (DIST) server.front = await serve(DIST, server.api);
    server.origin = server.front?.url ?? server.api;
    server.page = `${server.origin}/`;
    if (keys) server.key = await keyIn(`${server.data}/key`);
    return server;
  }

  async run() {
    this.process = spawn(BINARY, this.arguments, { stdio: "ignore" });
    const until = Date.now() + READY_MS;
    while (Date.now() < until) {
      const isReady = await fetch(`${this.api}/readyz`).then((answer) => answer.ok, () => false);
      if (isReady) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${BINARY} is not ready after ${READY_MS} ms`);
  }

  async kill() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill("SIGKILL");
    await once(this.process, "exit");
  }

  async send(method, path, body, headers = {}) {
    const answer = await fetch(`${this.api}/v1/${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...(this.key ? { authorization: `Bearer ${this.key}` } : {}), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Ends the server and leaves what it stored, for another one. */
  async leave() {
    this.front?.close();
    await this.kill().catch(() => {});
    return this.data;
  }

  async stop() {
    await this.leave();
    await rm(this.data, { recursive: true, force: true });
  }
}

export class Browser {
  static async start() {
    const browser = new Browser();
    browser.chromium = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
    return browser;
  }

  /** A page on which violations of the policy, failures of scripts and requests to other origins are noted. */
  async open(url, { theme = "light", width = 1280, height = 800 } = {}) {
    const context = await this.chromium.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: "reduce", timezoneId: "Europe/Berlin", locale: "en-GB" });
    const faults = [];
    // Noted outside of the page, so that the next document does not make them forgotten.
    await context.exposeFunction("noteViolation", (text) => faults.push(`policy: ${text}`));
    await context.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => window.noteViolation(`${event.violatedDirective} ${event.blockedURI}`));
    });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    page.faults = faults;
    const { origin } = new URL(url);
    page.on("pageerror", (error) => page.faults.push(`script: ${error.message}`));
    page.on("dialog", (dialog) => {
      page.faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(origin) && !/^(data|blob):/.test(request.url())) page.faults.push(`request to ${request.url()}`);
    });
    await page.goto(url);
    return page;
  }

  /** Fails if anything went wrong on the page that its story did not look at. */
  async close(page) {
    // A round trip: what the page has noted by now has arrived.
    await page.evaluate(() => 0);
    await page.context().close();
    if (page.faults.length > 0) throw new Error(page.faults.join("\n"));
  }

  async stop() {
    await this.chromium.close();
  }
}
