import { type Setting, useSettings } from "../../api/server";
import { useAddress } from "../../lib/address";
import { classes } from "../../lib/classes";
import { count } from "../../lib/format";
import { nextOrder, ordered, parseOrder } from "../../lib/order";
import { Button } from "../../ui/button";
import { FilterInput } from "../../ui/filter-input";
import { ListMenu } from "../../ui/list-menu";
import { Badge } from "../../ui/status";
import { Empty, Unready } from "../../ui/states";
import { type Column, Table } from "../../ui/table";

const COLUMNS: Column<Setting>[] = [
  { id: "setting", name: "Setting", width: "minmax(220px,1fr)", cell: (row) => <code className="font-mono text-xs">{row.setting}</code>, sort: (row) => row.setting },
  { id: "value", name: "Value", width: "minmax(200px,1.4fr)", cell: (row) => <code className={classes("font-mono text-xs", row.value === "unset" && "text-faint")} title={row.value}>{row.value}</code>, sort: (row) => row.value },
  { id: "origin", name: "Origin", width: "minmax(160px,1fr)", cell: (row) => (isSet(row) ? <Badge tone="info" title={row.origin}>{row.origin}</Badge> : <span className="text-faint">{row.origin}</span>), sort: (row) => row.origin },
];

function isSet(row: Setting): boolean {
  return row.origin !== "default";
}

/** The settings of the node that answers, each with where it comes from. */
export function Settings() {
  const query = useSettings();
  const [{ q = "", view, sort }, setAddress] = useAddress();
  if (!query.data) return <Unready query={query} />;
  const { node, settings } = query.data;
  const order = parseOrder(sort);
  const wanted = q.toLowerCase();
  const onlySet = view === "set";
  const rows = ordered(settings.filter((row) => (!onlySet || isSet(row)) && [row.setting, row.value, row.origin].some((text) => text.toLowerCase().includes(wanted))), COLUMNS, order);
  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-5 py-2">
        <FilterInput label="Filter settings" value={q} placeholder="Filter by name, value or origin" onChange={(text) => setAddress({ q: text || undefined })} className="max-w-xs" />
        <Button aria-pressed={onlySet} className={onlySet ? "border-accent! bg-selected!" : ""} onClick={() => setAddress({ view: onlySet ? undefined : "set" })}>Without defaults</Button>
        <span className="ml-auto truncate text-dim">{count(rows.length)} of {count(settings.length)} settings of <span className="text-text">{node}</span></span>
        <ListMenu name="settings" rows={() => rows} command={["settings"]} path="/v1/settings" />
      </div>
      <div className="min-h-0 flex-1">
        {rows.length === 0 ? <Empty icon="search" title="No setting matches" /> : <Table label="Settings" columns={COLUMNS} rows={rows} rowId={(row) => row.setting} order={order} onOrder={(id) => setAddress({ sort: nextOrder(order, id) })} />}
      </div>
    </div>
  );
}
