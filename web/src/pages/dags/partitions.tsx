import { useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { usePages } from "../../api/pages";
import { useMay } from "../../api/me";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { classes } from "../../lib/classes";
import { Button } from "../../ui/button";
import { TextField } from "../../ui/field";
import { Empty, Unready } from "../../ui/states";

type Partition = Schemas["AssetPartition"];

/** The partitions of each asset; a drag over them chooses the range of a backfill. */
export function Partitions({ dag, assets }: { dag: string; assets: string[] }) {
  return <div className="flex flex-col gap-6 p-5">{assets.map((asset) => <Asset key={asset} dag={dag} asset={asset} />)}</div>;
}

function look(partition: Partition): string {
  if (partition.last_attempt_outcome === "failed") return "bg-bad-bg text-bad";
  if (partition.stale_since) return "bg-warn-bg text-warn";
  return partition.last_materialization_at ? "bg-good-bg text-good" : "bg-mute-bg text-mute";
}

function wordOf(partition: Partition): string {
  if (partition.last_attempt_outcome === "failed") return "failed";
  if (partition.stale_since) return `stale: ${partition.stale_reason ?? ""}`;
  return partition.last_materialization_at ? "made" : "missing";
}

function Asset({ dag, asset }: { dag: string; asset: string }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const partitions = usePages(["runs", "partitions", asset], (cursor) => data(api.GET("/v1/assets/{asset}/partitions", { params: { path: { asset }, query: { cursor, limit: 500 } } })), (page) => page.partitions);
  const [range, setRange] = useState<[number, number]>();
  const [isDragging, setIsDragging] = useState(false);
  const [text, setText] = useState("");
  const rows = partitions.rows;
  const [first, last] = range ? [Math.min(...range), Math.max(...range)] : [-1, -1];
  const begin = (index: number) => { setRange([index, index]); setIsDragging(true); };
  const enter = (index: number) => isDragging && range && setRange([range[0], index]);
  const end = () => {
    setIsDragging(false);
    if (range) setText(first === last ? (rows[first]?.partition ?? "") : `${rows[first]?.partition}..${rows[last]?.partition}`);
  };
  const backfill = () => {
    const body = { dag, partitions: text };
    change({
      title: `Backfill ${dag}`, verb: "Start the backfill", description: `Runs ${dag} for the partitions ${text}, chunk by chunk.`,
      run: () => data(api.POST("/v1/backfills", { body })), done: "Backfill started",
      cli: () => cli("backfill", "create", dag, "--partitions", text), curl: () => curl("POST", "/v1/backfills", body),
    });
  };
  if (!partitions.data) return <Unready query={partitions} />;
  return (
    <section aria-label={`Partitions of ${asset}`}>
      <div className="mb-2 flex flex-wrap items-end gap-3">
        <h2 className="flex-1 font-semibold">{asset}</h2>
        {mayChange && (
          <>
            <div className="w-64"><TextField name="Partitions, one or a range" value={text} onChange={setText} placeholder="2026-01-01..2026-01-31" /></div>
            <Button look="primary" disabled={text === ""} onClick={backfill}>Backfill</Button>
          </>
        )}
      </div>
      {rows.length === 0 ? <Empty icon="graph" title="No partition was made yet" /> : (
        <div className="flex flex-wrap gap-1 select-none" onPointerUp={end} onPointerLeave={() => isDragging && end()}>
          {rows.map((partition, index) => (
            <button
              key={partition.partition}
              type="button"
              aria-pressed={index >= first && index <= last}
              onPointerDown={() => begin(index)}
              onPointerEnter={() => enter(index)}
              onClick={() => setText(first === last ? partition.partition : text)}
              title={`${partition.partition}: ${wordOf(partition)}`}
              className={classes("h-6 rounded px-1.5 text-xs tabular-nums", look(partition), index >= first && index <= last && "ring-2 ring-accent")}
            >
              {partition.partition}
            </button>
          ))}
        </div>
      )}
      {partitions.hasNextPage && <Button className="mt-2" onClick={() => void partitions.fetchNextPage()}>Load more</Button>}
    </section>
  );
}
