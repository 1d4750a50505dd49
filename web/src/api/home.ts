import { useQuery } from "@tanstack/react-query";
import { type Schemas, api, data } from "./client";
import { useScope } from "./scope";

export type Problem = Schemas["KnownProblem"];
export type Problems = Schemas["ProblemReport"];
export type Stats = Schemas["Stats"];

const REFRESH_MS = 10_000;
const POINT_SECONDS = 60;

/** What is wrong in the tenant now. */
export function useProblems() {
  const scope = useScope();
  return useQuery({
    queryKey: ["live", "problems", scope],
    refetchInterval: REFRESH_MS,
    staleTime: 2_000,
    queryFn: () => data(api.GET("/v1/problems")),
  });
}

/** What was started in the last hour and how it ended, by the minute. */
export function useStats() {
  const scope = useScope();
  return useQuery({
    queryKey: ["live", "stats", scope],
    refetchInterval: REFRESH_MS,
    staleTime: 2_000,
    queryFn: () => data(api.GET("/v1/stats", { params: { query: { step: POINT_SECONDS } } })),
  });
}
