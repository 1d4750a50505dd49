// Serves files that were just built in front of a server, as that server would serve them: for work on the UI without cargo.
//   SEGNO_DIST=/tmp/dist node tests/run.mjs
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
const API = /^(v1|docs|openapi\.json|healthz|readyz|metrics)(\/|$)/;

/** Listens on a free port, and forwards to `server` what is not a file of `dist` or a page. */
export async function serve(dist, server) {
  const home = await fetch(`${server}/`, { headers: { accept: "text/html" } });
  const policy = home.headers.get("content-security-policy");
  const base = /<base href="([^"]+)">/.exec(await home.text())?.[1] ?? "/";
  const page = (await readFile(join(dist, "index.html"), "utf8")).replace('<base href="/">', `<base href="${base}">`);

  const answer = async (incoming, outgoing) => {
    const { pathname } = new URL(incoming.url, server);
    const path = pathname.startsWith(base) ? pathname.slice(base.length) : pathname.slice(1);
    if (incoming.method === "GET" && !API.test(path)) {
      const file = path === "" ? undefined : await readFile(join(dist, normalize(`/${path}`))).catch(() => undefined);
      const isPacked = file !== undefined && /\bgzip\b/.test(incoming.headers["accept-encoding"] ?? "");
      outgoing.writeHead(200, { "content-type": file ? (TYPES[extname(path)] ?? "application/octet-stream") : TYPES[".html"], "content-security-policy": policy, "cache-control": "no-cache", ...(isPacked ? { "content-encoding": "gzip" } : {}) });
      return outgoing.end(isPacked ? gzipSync(file, { level: 9 }) : (file ?? page));
    }
    forward(server, incoming, outgoing);
  };
  const front = createServer((incoming, outgoing) => void answer(incoming, outgoing));
  await new Promise((resolve) => front.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${front.address().port}`,
    close: () => {
      front.close();
      front.closeAllConnections();
    },
  };
}

/** Passes a request on with its headers, the host among them: the server compares it with the origin. */
export function forward(server, incoming, outgoing) {
  const upstream = request(new URL(incoming.url, server), { method: incoming.method, headers: incoming.headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
    answer.on("error", () => outgoing.destroy());
  });
  upstream.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
  outgoing.on("close", () => upstream.destroy());
  incoming.pipe(upstream);
}
