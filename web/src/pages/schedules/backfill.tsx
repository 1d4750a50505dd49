import { useState } from "react";
import { api, because, data, type Schemas } from "../../api/client";
import { cli, curl, withReason } from "../../lib/command";
import { plural, words } from "../../lib/format";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { ReasonField, useReason } from "../../ui/reason";
import { messageOf } from "../../ui/states";
import { Time } from "../../ui/time";

/** Runs what lies in the past and was not run; what it would run is listed before. */
export function Backfill({ id, onClose }: { id: string; onClose: () => void }) {
  const [start, setStart] = useState("");
  const [end, setEnd] = useState("");
  const [result, setResult] = useState<{ isDry: boolean; answer: Schemas["Backfilled"] }>();
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const reason = useReason();
  const isReady = start !== "" && end !== "" && !isBusy;
  const range = () => ({ start: new Date(start).toISOString(), end: new Date(end).toISOString() });

  const run = async (isDry: boolean) => {
    setError(undefined);
    setIsBusy(true);
    try {
      const answer = await because(isDry ? undefined : reason.given, () => data(api.POST("/v1/recurring/{id}/backfill", { params: { path: { id } }, body: { ...range(), dry_run: isDry } })));
      setResult({ isDry, answer });
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  const isOver = result !== undefined && !result.isDry;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Backfill"
      description="Runs the occurrences of a time in the past that were not run."
      footer={isOver ? <Button look="primary" onClick={onClose}>Done</Button> : (
        <>
          {start !== "" && end !== "" && (
            <div className="mr-auto flex flex-wrap">
              <Copy text={cli("recurring", "backfill", id, "--start", range().start, "--end", range().end)}>Copy as CLI</Copy>
              <Copy text={withReason(curl("POST", `/v1/recurring/${id}/backfill`, range()), reason.given)}>Copy as curl</Copy>
            </div>
          )}
          <Button disabled={!isReady} onClick={() => void run(true)}>Show what would run</Button>
          <Button look="primary" disabled={!isReady || !result?.isDry} onClick={() => void run(false)}>{isBusy ? "Working…" : "Run them"}</Button>
        </>
      )}
    >
      <div className="grid grid-cols-2 gap-3">
        <TextField name="From, local time" type="datetime-local" value={start} onChange={(value) => { setStart(value); setResult(undefined); }} autoFocus />
        <TextField name="Until, local time" type="datetime-local" value={end} onChange={(value) => { setEnd(value); setResult(undefined); }} />
        {!isOver && <div className="col-span-2"><ReasonField reason={reason} /></div>}
      </div>
      {error !== undefined && <p role="alert" className="mt-3 whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
      {result && (
        <div className="mt-4" role="status">
          <p className="font-medium">{result.isDry ? `${plural(result.answer.occurrences, "occurrence")} in this time.` : `${plural(result.answer.dispatched, "run")} started.`}</p>
          <ul className="mt-2 max-h-60 overflow-auto">
            {result.answer.results.map((each) => (
              <li key={each.occurrence} className="flex justify-between gap-4 border-b border-line/60 py-1">
                <Time at={each.occurrence} absolute />
                <span className={each.error ? "text-bad" : "text-dim"}>{each.error ?? words(each.outcome)}{each.excluded_by && ` (${each.excluded_by})`}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Dialog>
  );
}
