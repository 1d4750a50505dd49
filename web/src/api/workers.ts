import { api, data } from "./client";
import { usePages } from "./pages";

/** The event stream has nothing of workers and pools: they are read again every few seconds. */
const REFRESH_MS = 5_000;

export function useWorkers() {
  return usePages(["workers"], (cursor) => data(api.GET("/v1/workers", { params: { query: { cursor, limit: 200 } } })), (page) => page.workers, { refetchInterval: REFRESH_MS });
}

export function usePools() {
  return usePages(["pools"], (cursor) => data(api.GET("/v1/pools", { params: { query: { cursor, limit: 200 } } })), (page) => page.pools, { refetchInterval: REFRESH_MS });
}
