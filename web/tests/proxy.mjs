// A reverse proxy that serves a server below a path, and leaves the path in place.
import { createServer } from "node:http";
import { forward } from "./built.mjs";

/** Forwards what comes below `base` to the server that `forwardTo` is called with. */
export async function listen(base) {
  let target;
  const proxy = createServer((incoming, outgoing) => {
    if (target === undefined || !incoming.url.startsWith(base)) return outgoing.writeHead(404).end();
    forward(target, incoming, outgoing);
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
