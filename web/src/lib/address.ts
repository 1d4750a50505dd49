import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Search } from "../router";

/** The search part of the address, and a way to change some of it. */
export function useAddress(): [Search, (change: Partial<Search>, options?: { replace?: boolean }) => void] {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const change = useCallback(
    (next: Partial<Search>, { replace = true } = {}) => {
      void navigate({ to: ".", search: (previous: Search) => ({ ...previous, ...next }), replace });
    },
    [navigate],
  );
  return [search, change];
}
