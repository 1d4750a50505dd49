import { Link } from "@tanstack/react-router";
import { duration } from "../../../lib/format";
import { fullTime } from "../../../lib/time";
import type { Lane } from "../../../lib/timeline";
import { Button } from "../../../ui/button";
import { Diff } from "../../../ui/diff";
import { Json } from "../../../ui/json";
import { Facts, Section } from "../../../ui/page";
import { Status } from "../../../ui/status";
import { Time } from "../../../ui/time";

type Props = { lane: Lane; until: number; onClose: () => void };

/** All about one lane: input, what came of it, every attempt. */
export function Detail({ lane, until, onClose }: Props) {
  const begin = (lane.begin.data ?? {}) as Record<string, unknown>;
  const end = (lane.end?.data ?? {}) as Record<string, unknown>;
  const output = end.result ?? end.output ?? end.data;
  return (
    <aside aria-label={`About ${lane.name}`} className="flex w-96 shrink-0 flex-col gap-4 overflow-auto border-l border-line bg-panel p-4 max-lg:w-72 max-md:absolute max-md:inset-y-0 max-md:right-0 max-md:z-30 max-md:shadow-pop">
      <div className="flex items-center gap-2">
        <h2 className="min-w-0 flex-1 truncate text-base font-semibold" title={lane.name}>{lane.name}</h2>
        <Button look="ghost" icon="close" aria-label="Close" onClick={onClose} />
      </div>
      <Facts
        facts={[
          ["Status", <Status key="status" status={lane.status} />],
          ["Kind", lane.kind],
          ["Began", fullTime(lane.from)],
          ["Took", duration((lane.until ?? until) - lane.from)],
          ["Due", lane.note && <Time key="due" at={lane.note} />],
          ["Events", `${lane.begin.id}${lane.end ? ` to ${lane.end.id}` : ""}`],
          ["Child", lane.child && <Link key="child" to="/instances/$id" params={{ id: lane.child }} search={{}} className="break-all text-accent-text hover:underline">{lane.child}</Link>],
        ]}
      />
      {lane.attempts.length > 0 && (
        <Section name="Failed attempts">
          <ol className="flex flex-col gap-2">
            {lane.attempts.map((attempt, index) => (
              <li key={index} className="rounded-md border border-line p-2">
                <div className="text-xs text-dim">Attempt {attempt.number} · {fullTime(attempt.at)}</div>
                <div className="break-words text-bad">{attempt.failure.code ?? attempt.failure.category}: {attempt.failure.message}</div>
                {index > 0 && <Diff label={`Attempt ${attempt.number} compared with the one before`} before={lane.attempts[index - 1]?.failure} after={attempt.failure} />}
              </li>
            ))}
          </ol>
        </Section>
      )}
      {begin.input !== undefined && <Section name="Input"><Json value={begin.input} label="Input" /></Section>}
      {output !== undefined && <Section name="Result"><Json value={output} label="Result" /></Section>}
      {begin.options !== undefined && <Section name="Options"><Json value={begin.options} label="Options" /></Section>}
    </aside>
  );
}
