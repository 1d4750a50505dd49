import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/errors";
import { router } from "./router";
import "./styles.css";

const STALE_MS = 5_000;
const MAX_RETRIES = 2;
const RELOADED = "segno.reloaded";
const RELOAD_PAUSE_MS = 30_000;

const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    // Whatever notices that the session has ended, the page asks who it is, and shows the sign-in.
    onError: (error, query) => {
      if (error instanceof ApiError && error.status === 401 && query.queryKey[0] !== "me") {
        void client.invalidateQueries({ queryKey: ["me"] });
      }
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      retry: (failures, error) => !(error instanceof ApiError && error.status < 500) && failures < MAX_RETRIES,
    },
  },
});

/** A page that was opened before the server was replaced names files that the new one does not have. */
window.addEventListener("vite:preloadError", (event) => {
  const last = Number(sessionStorage.getItem(RELOADED));
  if (Date.now() - last < RELOAD_PAUSE_MS) return;
  event.preventDefault();
  sessionStorage.setItem(RELOADED, String(Date.now()));
  window.location.reload();
});

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
