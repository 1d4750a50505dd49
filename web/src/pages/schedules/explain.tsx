import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, data } from "../../api/client";
import { TextField } from "../../ui/field";
import { Panel } from "../../ui/page";
import { messageOf } from "../../ui/states";
import { Time } from "../../ui/time";

/** Why the schedule did or did not run at any moment. */
export function Explain({ id, time }: { id: string; time: string | undefined }) {
  const [text, setText] = useState("");
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!time) return;
    setText(localText(time));
    panel.current?.scrollIntoView({ block: "nearest" });
  }, [time]);
  const moment = text === "" || Number.isNaN(Date.parse(text)) ? undefined : time && localText(time) === text ? time : new Date(text).toISOString();
  const answer = useQuery({
    queryKey: ["recurring", id, "explain", moment],
    enabled: moment !== undefined,
    queryFn: () => data(api.GET("/v1/recurring/{id}/explain", { params: { path: { id }, query: { time: moment as string } } })),
  });
  return (
    <Panel title="Explain a moment">
      <div ref={panel} className="flex flex-col gap-3 p-4">
        <TextField name="Local time" type="datetime-local" value={text} onChange={setText} hint="Any time, past or to come. A click on one of the next times, or on Explain in the history, fills it in." />
        {answer.error ? <p role="alert" className="text-bad">{messageOf(answer.error)}</p> : null}
        {answer.data && (
          <div role="status">
            <p className="font-medium">{answer.data.runs ? "It runs then: " : "It does not run then: "}{answer.data.text}</p>
            {answer.data.next && <p className="mt-1 text-dim">The next time after that: <Time at={answer.data.next} absolute /></p>}
          </div>
        )}
      </div>
    </Panel>
  );
}

function localText(time: string): string {
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
