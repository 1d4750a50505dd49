// Serves the built files below a path, with the headers of the server, and forwards everything else to a server:
// what a reverse proxy in front of Segno does. Used to test the base path, and servers that are built without pages.
//   node tests/proxy.mjs http://127.0.0.1:7070 [port] [/base/]
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL("../../crates/web/dist/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const POLICY =
  "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'";

export function serve(target, port = 0, base = "/") {
  const server = createServer((incoming, outgoing) => {
    const [pathname] = incoming.url.split("?");
    if (!pathname.startsWith(base)) return outgoing.writeHead(404).end();
    const path = pathname.slice(base.length);
    if (/^(v1\/|docs|openapi\.json|healthz|readyz|metrics)/.test(path)) return forward(target, base, incoming, outgoing);
    return file(path, base, outgoing);
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve({ url: `http://127.0.0.1:${server.address().port}${base}`, close: () => server.close() })));
}

async function file(path, base, outgoing) {
  const name = extname(path) === "" || path.includes("..") ? "index.html" : path;
  try {
    const content = await readFile(DIST + name);
    const body = name === "index.html" ? content.toString().replace('<base href="/">', `<base href="${base}">`) : content;
    outgoing.writeHead(200, { "content-type": TYPES[extname(name)] ?? "application/octet-stream", "content-security-policy": POLICY }).end(body);
  } catch {
    outgoing.writeHead(404).end();
  }
}

function forward(target, base, incoming, outgoing) {
  const url = new URL(target + incoming.url.slice(base.length - 1));
  const headers = { ...incoming.headers, host: url.host };
  // To the server this is the proxy's own request: its address is another than the page's.
  for (const name of ["origin", "referer", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"]) delete headers[name];
  const upstream = request(url, { method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
    answer.on("error", () => outgoing.destroy());
  });
  upstream.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
  outgoing.on("close", () => upstream.destroy());
  incoming.pipe(upstream);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [target, port = "7080", base = "/"] = process.argv.slice(2);
  const { url } = await serve(target, Number(port), base);
  console.log(url);
}
