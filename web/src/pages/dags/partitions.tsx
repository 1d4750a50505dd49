import { useState } from "react";
import { api, data } from "../../api/client";
import { isDay } from "../../lib/days";
import { usePages } from "../../api/pages";
import { useMay } from "../../api/me";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { classes } from "../../lib/classes";
import { count } from "../../lib/format";
import { Button } from "../../ui/button";
import { inputLook } from "../../ui/field";
import { Empty, Unready } from "../../ui/states";
import { Calendar } from "./calendar";
import { countsOf, lookOf, wordOf } from "./partition-states";

/** The partitions of each asset; a drag over them chooses the range of a backfill. */
export function Partitions({ dag, assets }: { dag: string; assets: string[] }) {
  return <div className="flex flex-col gap-6 p-5">{assets.map((asset) => <Asset key={asset} dag={dag} asset={asset} />)}</div>;
}

function Asset({ dag, asset }: { dag: string; asset: string }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const partitions = usePages(["runs", "partitions", asset], (cursor) => data(api.GET("/v1/assets/{asset}/partitions", { params: { path: { asset }, query: { cursor, limit: 500 } } })), (page) => page.partitions);
  const [range, setRange] = useState<[string, string]>();
  const [isDragging, setIsDragging] = useState(false);
  const [text, setText] = useState("");
  const rows = partitions.rows;
  const keys = rows.map((row) => row.partition);
  const areDays = keys.length > 0 && keys.every(isDay);
  // Days are in the order of time; other keys in the order of the list.
  const place = (key: string) => (areDays ? Date.parse(key) : keys.indexOf(key));
  const ordered = (one: string, other: string): [string, string] => (place(one) <= place(other) ? [one, other] : [other, one]);
  const choose = (from: string, until: string) => {
    const [first, last] = ordered(from, until);
    setRange([from, until]);
    setText(first === last ? first : `${first}..${last}`);
  };
  const isChosen = (key: string) => {
    if (!range) return false;
    const [first, last] = ordered(...range);
    return place(key) >= place(first) && place(key) <= place(last);
  };
  const begin = (key: string) => choose(key, key);
  const enter = (key: string) => range && isDragging && choose(range[0], key);
  const end = () => setIsDragging(false);
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
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 className="flex-1 text-base font-semibold">{asset}</h2>
        {mayChange && (
          <>
            <div className="w-56"><input aria-label="Partitions, one or a range" value={text} onChange={(event) => setText(event.target.value)} placeholder="2026-01-01..2026-01-31" className={classes(inputLook, "h-7")} /></div>
            <Button look="primary" disabled={text === ""} onClick={backfill}>Backfill</Button>
          </>
        )}
      </div>
      {rows.length === 0 ? <Empty icon="graph" title="No partition was made yet" /> : (
        <div onPointerDown={() => setIsDragging(true)} onPointerUp={end} onPointerLeave={end}>
          <p className="mb-2 text-xs text-dim">{countsOf(rows, areDays).map(([word, number]) => `${count(number)} ${word}`).join(", ")}.{mayChange && " Drag over partitions, or click with Shift, to choose a range for a backfill."}</p>
          {areDays ? (
            <Calendar partitions={rows} isChosen={isChosen} onBegin={begin} onEnter={enter} onExtend={(key) => choose(range?.[0] ?? key, key)} />
          ) : (
            <div className="flex flex-wrap gap-1 select-none">
              {rows.map((partition) => (
                <button
                  key={partition.partition}
                  type="button"
                  aria-label={`${partition.partition}: ${wordOf(partition)}`}
                  aria-pressed={isChosen(partition.partition)}
                  onPointerDown={() => begin(partition.partition)}
                  onPointerEnter={() => enter(partition.partition)}
                  onKeyDown={(event) => {
                    if (event.key !== "Enter" && event.key !== " ") return;
                    choose(event.shiftKey && range ? range[0] : partition.partition, partition.partition);
                  }}
                  title={`${partition.partition}: ${wordOf(partition)}`}
                  className={classes("h-6 rounded px-1.5 text-xs tabular-nums", lookOf(partition), isChosen(partition.partition) && "ring-2 ring-accent")}
                >
                  {partition.partition}
                </button>
              ))}
            </div>
          )}
        </div>
      )}
      {partitions.hasNextPage && <Button className="mt-2" onClick={() => void partitions.fetchNextPage()}>Load more</Button>}
    </section>
  );
}
