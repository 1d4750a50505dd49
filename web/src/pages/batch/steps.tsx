import { type BatchDetails, MOST_STEP_MEMBERS, type Phase, type StepCell, useStepCells, useStepMembers } from "../../api/runbooks";
import { useAddress } from "../../lib/address";
import { classes } from "../../lib/classes";
import { count, duration, plural, words } from "../../lib/format";
import { Button } from "../../ui/button";
import { ListMenu } from "../../ui/list-menu";
import { Status, StatusMark, toneOf } from "../../ui/status";
import { Empty, Unready } from "../../ui/states";
import { Table, type Column } from "../../ui/table";
import { Time } from "../../ui/time";
import type { OpenMember } from "./member-panel";

/** All states, in the order of a step's life. */
const STATES = ["pending", "dispatched", "polling", "succeeded", "failed", "poll_timeout", "rolled_back", "cancelled", "skipped"];
const FILL = { good: "bg-good-bg text-good", bad: "bg-bad-bg text-bad", warn: "bg-warn-bg text-warn", info: "bg-info-bg text-info", mute: "bg-mute-bg text-mute" };
const BAR = { good: "var(--good)", bad: "var(--bad)", warn: "var(--warn)", info: "var(--info)", mute: "var(--line-strong)" };

type Props = { batch: BatchDetails; onOpen: (member: OpenMember, step: number) => void };
type StepRow = { phase: Phase; index: number; name: string; function: string; pool: string; cells: Map<string, StepCell>; total: number; retries: number; meanMs: number | undefined };

/** Steps × states: the batch from far away, however many members it has. A number leads to its members. */
export function Steps({ batch, onOpen }: Props) {
  const query = useStepCells(batch);
  const [{ step }, setAddress] = useAddress();
  if (!query.data) return <Unready query={query} />;
  const rows = rowsOf(batch, query.data);
  const states = STATES.filter((state) => rows.some((row) => row.cells.has(state)));
  const chosen = parseCell(step);
  const chosenRow = chosen && rows.find((row) => row.phase.id === chosen.phase && row.index === chosen.index);
  if (rows.length === 0) return <Empty icon="book" title="No step has been created yet">The steps of a phase are created when it begins.</Empty>;
  return (
    <div className="flex h-full min-h-0 max-lg:flex-col">
      <div className="relative min-w-0 flex-1 overflow-auto p-5">
        <div className="mb-2 flex justify-end">
          <ListMenu name={`batch-${batch.id}-steps`} rows={() => query.data} command={["sql", sqlOf(batch.id)]} path="/v1/sql" body={{ query: sqlOf(batch.id) }} />
        </div>
        <table aria-label="Steps and states" className="w-full text-left">
          <thead className="text-xs text-faint">
            <tr>
              <th className="h-8 pr-4 font-medium">Phase</th>
              <th className="pr-4 font-medium">Step</th>
              {states.map((state) => <th key={state} className="w-20 px-1 text-right font-medium whitespace-nowrap"><span className="inline-flex items-center gap-1"><StatusMark status={state} />{words(state)}</span></th>)}
              <th className="w-1/5 px-3 font-medium"><span className="sr-only">Shares</span></th>
              <th className="px-2 text-right font-medium">Retries</th>
              <th className="text-right font-medium whitespace-nowrap">Mean time</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={`${row.phase.id}.${row.index}`} className="h-10 border-t border-line">
                <td className="max-w-40 truncate pr-4 text-dim">{rows[index - 1]?.phase.id === row.phase.id ? "" : row.phase.phase_name}</td>
                <td className="max-w-56 truncate pr-4" title={`${row.function} on ${row.pool}`}><span className="font-medium">{row.name}</span>{row.function !== row.name && <span className="ml-1.5 text-xs text-faint">{row.function}</span>}</td>
                {states.map((state) => {
                  const cell = row.cells.get(state);
                  const isChosen = chosenRow === row && chosen?.status === state;
                  return (
                    <td key={state} className="px-1 text-right">
                      {cell ? (
                        <button
                          type="button"
                          aria-pressed={isChosen}
                          aria-label={`${row.name}: ${plural(cell.count, "member")} ${words(state)}`}
                          onClick={() => setAddress({ step: isChosen ? undefined : `${row.phase.id}.${row.index}.${state}` })}
                          className={classes("h-7 min-w-12 rounded px-2 text-right font-medium tabular-nums hover:brightness-95 dark:hover:brightness-125", FILL[toneOf(state)], isChosen && "ring-2 ring-accent")}
                        >
                          {count(cell.count)}
                        </button>
                      ) : <span className="pr-2 text-faint">·</span>}
                    </td>
                  );
                })}
                <td className="px-3" aria-hidden="true">
                  <span className="flex h-1.5 gap-px overflow-hidden rounded-full bg-mute-bg">
                    {states.map((state) => row.cells.has(state) && <span key={state} style={{ width: `${((row.cells.get(state)?.count ?? 0) / row.total) * 100}%`, background: BAR[toneOf(state)] }} />)}
                  </span>
                </td>
                <td className={`px-2 text-right tabular-nums ${row.retries > 0 ? "text-warn" : "text-faint"}`}>{count(row.retries)}</td>
                <td className="text-right whitespace-nowrap tabular-nums">{row.meanMs === undefined ? <span className="text-faint">–</span> : duration(row.meanMs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p className="mt-3 text-xs text-faint">A number leads to its members. {(batch.init ?? []).length > 0 && `Before the phases: ${(batch.init ?? []).map((each) => `${each.step_name} ${words(each.status)}`).join(", ")}.`}</p>
      </div>
      {chosen && chosenRow && <Members batch={batch.id} cell={chosen} name={chosenRow.name} onOpen={onOpen} onClose={() => setAddress({ step: undefined })} />}
    </div>
  );
}

type Cell = { phase: number; index: number; status: string };

function parseCell(text: string | undefined): Cell | undefined {
  const match = /^(\d+)\.(\d+)\.([a-z_]+)$/.exec(text ?? "");
  return match && STATES.includes(match[3] ?? "") ? { phase: Number(match[1]), index: Number(match[2]), status: match[3] ?? "" } : undefined;
}

function sqlOf(batch: number): string {
  return `SELECT phase, step_index, name, status, count(*) AS members FROM steps WHERE batch = ${batch} AND phase IS NOT NULL GROUP BY phase, step_index, name, status`;
}

function rowsOf(batch: BatchDetails, cells: StepCell[]): StepRow[] {
  return batch.phases
    .filter((phase) => phase.status !== "superseded")
    .flatMap((phase) => {
      const own = cells.filter((cell) => cell.phase === phase.id);
      return [...new Set(own.map((cell) => cell.index))].sort((a, b) => a - b).map((index): StepRow => {
        const ofStep = own.filter((cell) => cell.index === index);
        const timed = ofStep.filter((cell) => cell.meanMs !== undefined);
        const ended = timed.reduce((sum, cell) => sum + cell.count, 0);
        const { name = "", function: fn = "", pool = "" } = ofStep[0] ?? {};
        return {
          phase, index, name, function: fn, pool,
          cells: new Map(ofStep.map((cell) => [cell.status, cell])),
          total: ofStep.reduce((sum, cell) => sum + cell.count, 0),
          retries: ofStep.reduce((sum, cell) => sum + cell.retries, 0),
          meanMs: ended === 0 ? undefined : timed.reduce((sum, cell) => sum + (cell.meanMs ?? 0) * cell.count, 0) / ended,
        };
      });
    });
}

type MembersProps = { batch: number; cell: Cell; name: string; onOpen: Props["onOpen"]; onClose: () => void };
type MemberRow = { id: number; key: string; status: string; step: number; error: string | undefined; at: string | undefined };

function Members({ batch, cell, name, onOpen, onClose }: MembersProps) {
  const query = useStepMembers(batch, cell);
  const columns: Column<MemberRow>[] = [
    { id: "key", name: "Member", width: "minmax(120px,1fr)", cell: (row) => <button type="button" className="font-medium hover:underline" onClick={() => onOpen({ id: row.id, member_key: row.key }, row.step)}>{row.key}</button> },
    { id: "status", name: "Status", width: "100px", cell: (row) => <Status status={row.status} /> },
    { id: "at", name: "Since", width: "100px", cell: (row) => <span className="text-dim"><Time at={row.at} /></span> },
    ...(query.data?.members.some((row) => row.error) ? [{ id: "error", name: "Why", width: "minmax(160px,1.5fr)", cell: (row: MemberRow) => <span className="text-bad" title={row.error}>{row.error}</span> }] : []),
  ];
  return (
    <section aria-label={`Members of ${name}: ${words(cell.status)}`} className="flex w-[min(480px,45%)] shrink-0 flex-col border-l border-line max-lg:h-72 max-lg:w-full max-lg:border-t max-lg:border-l-0">
      <div className="flex items-center gap-2 px-4 py-2">
        <h2 className="min-w-0 flex-1 truncate font-semibold">{name} <Status status={cell.status} className="ml-1 font-normal" /></h2>
        <Button look="ghost" icon="close" aria-label="Close the members" onClick={onClose} />
      </div>
      {query.data?.truncated && <p className="px-4 pb-1 text-xs text-warn">The first {count(MOST_STEP_MEMBERS)} of them, in the order in which they were added.</p>}
      <div className="min-h-0 flex-1">
        {!query.data ? <Unready query={query} /> : query.data.members.length === 0 ? <Empty icon="check" title="None any more" /> : (
          <Table label="Members of the step" columns={columns} rows={query.data.members} rowId={(row) => String(row.id)} onOpen={(row) => onOpen({ id: row.id, member_key: row.key }, row.step)} />
        )}
      </div>
    </section>
  );
}
