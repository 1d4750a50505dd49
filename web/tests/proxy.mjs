// A reverse proxy that serves a server below a path, and leaves the path in place.
import { createServer, request } from "node:http";

/** Forwards what comes below `base` to the server that `forwardTo` is called with. */
export async function listen(base) {
  let target;
  const proxy = createServer((incoming, outgoing) => {
    if (target === undefined || !incoming.url.startsWith(base)) return outgoing.writeHead(404).end();
    const upstream = request(new URL(target + incoming.url), { method: incoming.method, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    upstream.on("error", () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
    outgoing.on("close", () => upstream.destroy());
    incoming.pipe(upstream);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${proxy.address().port}${base}`,
    forwardTo: (server) => (target = server),
    close: () => {
      proxy.close();
      proxy.closeAllConnections();
    },
  };
}
