import type { HistoryEvent, Instance } from "../../api/instances";
import { Diff } from "../../ui/diff";
import { Json } from "../../ui/json";
import { Facts, Panel } from "../../ui/page";
import { Badge } from "../../ui/status";
import { Time } from "../../ui/time";

/** Input, result, status, progress, and the failure with what came before it. */
export function DataTab({ instance, events }: { instance: Instance; events: HistoryEvent[] | undefined }) {
  const start = events?.find((event) => event.kind === "OrchestrationStarted")?.data as { input?: unknown } | undefined;
  const input = instance.call ? instance.call.input : start?.input;
  return (
    <div className="grid grid-cols-1 gap-4 p-5 lg:grid-cols-2">
      <Panel title="Input"><div className="p-3"><Json value={input ?? null} label="Input" /></div></Panel>
      <Panel title={instance.failure ? "Failure" : "Result"}>
        <div className="p-3">
          {instance.failure ? <FailureView instance={instance} /> : instance.result !== undefined ? <Json value={instance.result} label="Result" /> : <p className="p-2 text-dim">It has not ended.</p>}
        </div>
      </Panel>
      {instance.custom_status !== undefined && instance.custom_status !== null && (
        <Panel title="Status set by the code"><div className="p-3"><Json value={instance.custom_status} label="Status" /></div></Panel>
      )}
      {instance.call?.progress !== undefined && instance.call?.progress !== null && (
        <Panel title="Progress" aside={<span className="text-dim"><Time at={instance.call.progress_at} /></span>}><div className="p-3"><Json value={instance.call.progress} label="Progress" /></div></Panel>
      )}
      {(instance.call?.failed_attempts?.length ?? 0) > 0 && (
        <Panel title="Failed attempts" className="lg:col-span-2">
          <ol className="divide-y divide-line">
            {instance.call?.failed_attempts?.map((attempt, index) => (
              <li key={attempt.attempt} className="flex gap-4 px-4 py-2">
                <span className="w-20 text-dim">Attempt {attempt.attempt}</span>
                <span className="w-28 text-dim"><Time at={attempt.failed_at} /></span>
                <span className="min-w-0 flex-1 break-words text-bad">{attempt.failure.code ?? attempt.failure.category}: {attempt.failure.message}
                  {index > 0 && <Diff label={`Attempt ${attempt.attempt} compared with the one before`} before={instance.call?.failed_attempts?.[index - 1]?.failure} after={attempt.failure} />}
                </span>
              </li>
            ))}
          </ol>
        </Panel>
      )}
    </div>
  );
}

function FailureView({ instance }: { instance: Instance }) {
  const { failure } = instance;
  if (!failure) return null;
  return (
    <div className="flex flex-col gap-3 p-1">
      <p className="break-words whitespace-pre-wrap text-bad">{failure.message}</p>
      <Facts
        facts={[
          ["Category", <Badge key="category" tone="bad">{failure.category}</Badge>],
          ["Code", failure.code && <code className="font-mono text-xs">{failure.code}</code>],
          ["Retryable", failure.retryable ? "yes" : "no"],
        ]}
      />
      {failure.details !== undefined && failure.details !== null && <Json value={failure.details} label="Details" />}
    </div>
  );
}
