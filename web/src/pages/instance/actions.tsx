import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data } from "../../api/client";
import { type Instance, hasEnded, nameOf, useExplanation } from "../../api/instances";
import { useMay } from "../../api/me";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { copyText } from "../../ui/copy";
import { Menu, type MenuItem } from "../../ui/menu";
import { RestartDialog } from "./restart";
import { SendDialog } from "./send";

/** What can be done with an instance. Changes ask before, and show the same as a command. */
export function InstanceActions({ instance }: { instance: Instance }) {
  const change = useChange();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const [sending, setSending] = useState<"signal" | "mailbox">();
  const [isRestarting, setIsRestarting] = useState(false);
  const explanation = useExplanation(instance.id, mayChange && !hasEnded(instance.status)).data;
  const waitsForAttempt = explanation?.waits.some((wait) => wait.kind === "activity" && wait.state === "delayed") ?? false;
  const { id } = instance;
  const params = { path: { id } };
  const path = `/v1/instances/${encodeURIComponent(id)}`;
  const isOpen = !hasEnded(instance.status);
  const withReason = (reason: string | undefined) => (reason ? ["--reason", reason] : []);

  const cancel = () =>
    change({
      title: "Cancel this instance", verb: "Cancel it", isDangerous: true, takesReason: true,
      description: "Its code is told, and so are its children. What ends in time still counts.",
      run: (reason) => data(api.POST("/v1/instances/{id}/cancel", { params, body: { reason } })),
      done: "Cancellation requested", cli: (reason) => cli("cancel", id, ...withReason(reason)), curl: (reason) => curl("POST", `${path}/cancel`, { reason }),
    });
  const pause = () =>
    change({
      title: "Pause this instance", verb: "Pause it", takesReason: true,
      description: "It does nothing more until it is resumed. Activities that run go on, and their results are kept.",
      run: (reason) => data(api.POST("/v1/instances/{id}/pause", { params, body: { reason } })),
      done: "Paused", cli: (reason) => cli("pause", id, ...withReason(reason)), curl: (reason) => curl("POST", `${path}/pause`, { reason }),
    });
  const resume = () =>
    change({
      title: "Resume this instance", verb: "Resume it", description: "It goes on where it stopped.",
      run: () => data(api.POST("/v1/instances/{id}/resume", { params })),
      done: "Resumed", cli: () => cli("resume", id), curl: () => curl("POST", `${path}/resume`),
    });
  const retry = () =>
    change({
      title: "Retry now", verb: "Retry it now", takesReason: true,
      description: "Activities that wait for their next attempt run at once. Their attempts count as before, and timers keep their time.",
      run: (reason) => data(api.POST("/v1/instances/{id}/retry", { params, body: { reason } })),
      done: "The next attempt was called", cli: (reason) => cli("retry", id, ...withReason(reason)), curl: (reason) => curl("POST", `${path}/retry`, { reason }),
    });
  const restart = () =>
    change({
      title: "Restart this instance", verb: "Restart it", takesReason: true, description: "Its next execution begins with the input of the last start. Earlier executions stay.",
      run: (reason) => data(api.POST("/v1/instances/{id}/restart", { params, body: { reason } })),
      done: "Restarted", cli: (reason) => cli("restart", id, ...withReason(reason)), curl: (reason) => curl("POST", `${path}/restart`, { reason }),
    });
  const remove = () =>
    change({
      title: "Delete this instance", verb: "Delete it", isDangerous: true,
      description: "Its history, its children and all that is queued for it are deleted. This cannot be undone.",
      run: async () => {
        await data(api.DELETE("/v1/instances/{id}", { params: { path: { id }, query: isOpen ? { force: true } : {} } }));
        void navigate({ to: "/instances", search: {} });
      },
      done: "Deleted", cli: () => cli("delete", id, ...(isOpen ? ["--force"] : [])), curl: () => curl("DELETE", isOpen ? `${path}?force=true` : path),
    });
  const again = () =>
    void navigate({ to: "/start", search: { name: nameOf(instance), view: instance.function ? "function" : "orchestration", q: id } });

  const copy = async (text: string) => toast((await copyText(text)) ? "Copied" : "The browser does not let the page copy");
  const copies: MenuItem[] = [
    { name: "Copy as CLI", onSelect: () => void copy(cli("show", id)) },
    { name: "Copy as curl", onSelect: () => void copy(curl("GET", path)) },
  ];
  if (!mayChange) return <Menu label="More" trigger={<Button icon="more" aria-label="More" />} items={copies} />;
  const items: MenuItem[] = [
    ...copies,
    "line",
    { name: "Start again with changed input…", onSelect: again },
    ...(isOpen ? [] : [{ name: "Restart…", onSelect: restart }, { name: "Restart with another input…", onSelect: () => setIsRestarting(true) }]),
    "line",
    { name: "Delete…", danger: true, onSelect: remove },
  ];
  return (
    <>
      {isOpen && !instance.call && (
        <Menu
          label="Send"
          trigger={<Button icon="send">Send</Button>}
          items={[
            { name: "Raise a signal…", onSelect: () => setSending("signal") },
            { name: "Put into a mailbox…", onSelect: () => setSending("mailbox") },
          ]}
        />
      )}
      {waitsForAttempt && <Button icon="refresh" onClick={retry}>Retry now</Button>}
      {instance.status === "paused" && <Button look="primary" icon="play" onClick={resume}>Resume</Button>}
      {isOpen && instance.status !== "paused" && <Button icon="pause" onClick={pause}>Pause</Button>}
      {isOpen && <Button icon="stop" onClick={cancel}>Cancel</Button>}
      {!isOpen && <Button icon="refresh" onClick={restart}>Restart</Button>}
      <Menu label="More" trigger={<Button icon="more" aria-label="More" />} items={items} />
      {isRestarting && <RestartDialog instance={instance} onClose={() => setIsRestarting(false)} />}
      {sending && <SendDialog id={id} channel={sending} onClose={() => setSending(undefined)} />}
    </>
  );
}
