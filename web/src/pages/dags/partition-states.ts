import type { Schemas } from "../../api/client";
import { daysBetween } from "../../lib/days";

type Partition = Schemas["AssetPartition"];

export function lookOf(partition: Partition | undefined): string {
  if (!partition) return "border border-dashed border-line-strong text-dim";
  if (partition.last_attempt_outcome === "failed") return "bg-bad-bg text-bad";
  if (partition.stale_since) return "bg-warn-bg text-warn";
  return partition.last_materialization_at ? "bg-good-bg text-good" : "border border-dashed border-line-strong text-dim";
}

export function wordOf(partition: Partition | undefined): string {
  if (!partition) return "missing";
  if (partition.last_attempt_outcome === "failed") return "failed";
  if (partition.stale_since) return partition.stale_reason ? `stale: ${partition.stale_reason}` : "stale";
  return partition.last_materialization_at ? "made" : "missing";
}

/** How many partitions are in each state, for the line above them; of days, those between them too. */
export function countsOf(partitions: Partition[], areDays: boolean): [string, number][] {
  const counts = new Map<string, number>();
  for (const partition of partitions) {
    const word = wordOf(partition).split(":")[0] ?? "";
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const days = areDays ? partitions.map((each) => each.partition).sort() : [];
  const missing = areDays ? daysBetween(days[0] ?? "", days.at(-1) ?? "") - days.length : 0;
  if (missing > 0) counts.set("missing", (counts.get("missing") ?? 0) + missing);
  return [...counts];
}
