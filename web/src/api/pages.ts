import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useScope } from "./scope";

type Page = { next_cursor?: string | null };

/** A listing of the server, page after page, as one list. */
export function usePages<P extends Page, T>(
  key: QueryKey,
  fetchPage: (cursor: string | undefined) => Promise<P>,
  rowsOf: (page: P) => T[],
  options: { refetchInterval?: number; enabled?: boolean } = {},
) {
  const scope = useScope();
  const query = useInfiniteQuery({
    queryKey: [...key, scope],
    queryFn: ({ pageParam }) => fetchPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: P) => page.next_cursor ?? undefined,
    ...options,
  });
  const rows = useMemo(() => query.data?.pages.flatMap(rowsOf) ?? [], [query.data]);
  return { ...query, rows };
}
