import { type BatchAction, type BatchDetails, requestOf } from "../../api/runbooks";
import { api, data, request } from "../../api/client";
import { useMay } from "../../api/me";
import { cli, curl } from "../../lib/command";
import { download } from "../../lib/download";
import { useChange } from "../../shell/change";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Menu } from "../../ui/menu";
import { messageOf } from "../../ui/states";

type Wanted = { title: string; verb: string; description?: string; takesReason?: boolean; isDangerous?: boolean; word: string; body: (reason: string | undefined) => BatchAction };

export function BatchActions({ batch }: { batch: BatchDetails }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const isOver = ["completed", "failed", "cancelled"].includes(batch.status);
  const ask = ({ body, word, ...rest }: Wanted) =>
    change({
      ...rest,
      run: (reason) => requestOf(batch.id, body(reason)),
      cli: (reason) => cli("batch", word, String(batch.id), ...(reason ? ["--reason", reason] : [])),
      curl: (reason) => curl("POST", `/v1/batches/${batch.id}/requests`, body(reason)),
    });
  const report = async () => {
    try {
      download(`batch-${batch.id}.csv`, "text/csv", await request<string>(`/v1/batches/${batch.id}/report`));
    } catch (error) {
      toast(messageOf(error), true);
    }
  };
  const remove = () =>
    change({
      title: `Delete batch ${batch.id}`, verb: "Delete it", isDangerous: true, description: "With its members, steps and requests.",
      run: () => data(api.DELETE("/v1/batches/{id}", { params: { path: { id: batch.id } } })),
      cli: () => cli("batch", "delete", String(batch.id)), curl: () => curl("DELETE", `/v1/batches/${batch.id}`),
    });
  return (
    <>
      {mayChange && !isOver && (
        <>
          <Button look="primary" icon="play" onClick={() => ask({ title: "Advance the batch", verb: "Advance", word: "advance", description: "Its next phase begins now.", body: () => ({ action: "advance" }) })}>Advance</Button>
          {batch.paused_at ? (
            <Button onClick={() => ask({ title: "Resume the batch", verb: "Resume", word: "resume", body: () => ({ action: "resume_batch" }) })}>Resume</Button>
          ) : (
            <Button icon="pause" onClick={() => ask({ title: "Pause the batch", verb: "Pause", word: "pause", takesReason: true, description: "No further steps are dispatched. Those under way go on.", body: (reason) => ({ action: "pause_batch", reason }) })}>Pause</Button>
          )}
        </>
      )}
      <Menu
        label="More"
        trigger={<Button icon="more" aria-label="More" />}
        items={[
          { name: "Download the report (CSV)", onSelect: () => void report() },
          ...(mayChange
            ? ([
                { name: "Retry failed members…", disabled: batch.member_counts.failed === 0, onSelect: () => ask({ title: "Retry all failed members", verb: "Retry them", word: "retry", description: "From the step in which they failed.", body: () => ({ action: "retry_members", from: "step" }) }) },
                { name: "Retry init…", onSelect: () => ask({ title: "Retry the init steps", verb: "Retry", word: "retry-init", body: () => ({ action: "retry_init" }) }) },
                "line",
                ...(isOver ? [{ name: "Delete…", danger: true, onSelect: remove }] : [{ name: "Cancel the batch…", danger: true, onSelect: () => ask({ title: "Cancel the batch", verb: "Cancel it", word: "cancel", isDangerous: true, takesReason: true, body: (reason) => ({ action: "cancel_batch", reason }) }) }]),
              ] as const)
            : []),
        ]}
      />
    </>
  );
}
