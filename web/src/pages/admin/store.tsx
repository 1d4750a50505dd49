import type { Schemas } from "../../api/client";
import { useArchive, useStoreFigures, useSystem } from "../../api/server";
import { bytes, count } from "../../lib/format";
import { Figures } from "../../ui/figures";
import { ListMenu } from "../../ui/list-menu";
import { Facts, Panel } from "../../ui/page";
import { RowsTable } from "../../ui/rows-table";
import { Unready } from "../../ui/states";

/** What the store takes on its disk, what is stored, and what the archive has. */
export function Store() {
  const figures = useStoreFigures();
  const system = useSystem();
  const archive = useArchive();
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-5 p-5">
      {figures.data?.damage && <p role="alert" className="rounded-md bg-bad-bg px-4 py-3 text-bad">The store is damaged: {figures.data.damage}</p>}
      <Panel title="Disk" aside={figures.data && <ListMenu name="store" rows={() => (figures.data ? [figures.data] : [])} command={["usage"]} path="/v1/store" />}>
        {figures.data ? <Disk figures={figures.data} /> : <Unready query={figures} />}
      </Panel>
      <Panel title="Stored" aside={<span className="text-xs text-faint">whole store</span>}>
        {system.data ? <div className="p-4"><Counts counts={system.data.counts} /></div> : <Unready query={system} />}
      </Panel>
      <Panel title="Archive" aside={<span className="text-xs text-faint">this tenant</span>}>
        {archive.data ? <Archive archive={archive.data} /> : <Unready query={archive} />}
      </Panel>
    </div>
  );
}

function Disk({ figures }: { figures: Schemas["StoreFigures"] }) {
  const { bytes: own, log_bytes: log, disk_bytes: disk, disk_free_bytes: free } = figures;
  const isKnown = typeof disk === "number" && typeof free === "number";
  const data = Math.max((own ?? 0) - (log ?? 0), 0);
  const parts: [name: string, size: number, colour: string][] = isKnown
    ? [["data", data, "var(--accent)"], ["log", log ?? 0, "var(--info)"], ["others", Math.max(disk - free - (own ?? 0), 0), "var(--line-strong)"], ["free", free, "var(--mute-bg)"]]
    : [];
  const size = (value: number | null | undefined) => (typeof value === "number" ? bytes(value) : undefined);
  return (
    <div className="flex flex-col gap-4 p-4">
      {isKnown && (
        <div>
          <div role="img" aria-label={parts.map(([name, value]) => `${name} ${bytes(value)}`).join(", ")} className="flex h-3 gap-px overflow-hidden rounded-full bg-mute-bg">
            {parts.map(([name, value, colour]) => <span key={name} style={{ width: `${(value / disk) * 100}%`, minWidth: value > 0 ? 2 : 0, background: colour }} />)}
          </div>
          <ul className="mt-2 flex flex-wrap gap-x-5 gap-y-1 text-xs text-dim" aria-hidden="true">
            {parts.map(([name, value, colour]) => <li key={name} className="flex items-center gap-1.5"><span className="size-2 rounded-full border border-line" style={{ background: colour }} />{name} {bytes(value)}</li>)}
          </ul>
        </div>
      )}
      <Facts
        facts={[
          ["Store", figures.store],
          ["Place", <code key="place" className="font-mono text-xs break-all">{figures.place}</code>],
          ["Size", size(own)],
          ["Log", log !== undefined && log !== null && <>{bytes(log)} <span className="text-dim">until the next checkpoint</span></>],
          ["Disk", isKnown && `${bytes(free)} of ${bytes(disk)} free`],
        ]}
      />
    </div>
  );
}

function Counts({ counts }: { counts: Schemas["Counts"] }) {
  const { instances, executions, events, ...states } = counts;
  const figure = ([name, value]: [string, number]): [string, string, string?] => [name, count(value), name === "failed" && value > 0 ? "text-bad" : ""];
  return <Figures figures={[...Object.entries({ instances, executions, events }), ...Object.entries(states)].map(figure)} />;
}

function Archive({ archive }: { archive: Schemas["ArchiveSummary"] }) {
  if (archive.kinds.length === 0) return <p className="p-4 text-dim">{archive.enabled ? "Nothing has been archived yet." : "This server has no archive: what retention removes is gone. The setting is archive.enabled."}</p>;
  return (
    <RowsTable label="Archive" names={["Rows", "Files", "Size", "First day", "Last day"]}>
      {archive.kinds.map((each) => (
        <tr key={each.kind} className="h-9 border-t border-line">
          <td className="pr-4 font-medium">{each.kind}</td>
          <td className="pr-4 tabular-nums">{count(each.files)}</td>
          <td className="pr-4 tabular-nums">{bytes(each.bytes)}</td>
          <td className="pr-4 text-dim tabular-nums">{each.oldest_day}</td>
          <td className="text-dim tabular-nums">{each.newest_day}</td>
        </tr>
      ))}
    </RowsTable>
  );
}
