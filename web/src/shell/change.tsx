import { useQueryClient } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useState } from "react";
import { Button } from "../ui/button";
import { Copy } from "../ui/copy";
import { Dialog } from "../ui/dialog";
import { TextField } from "../ui/field";
import { messageOf } from "../ui/states";
import { toast } from "./toasts";

export type Change = {
  title: string;
  description?: React.ReactNode;
  /** The word on the button. */
  verb: string;
  isDangerous?: boolean;
  /** Whether the route stores a reason. It is in the history of the thing, and in the audit log. */
  takesReason?: boolean;
  run: (reason: string | undefined) => Promise<unknown>;
  done?: string;
  cli?: (reason: string | undefined) => string;
  curl?: (reason: string | undefined) => string;
};

const Context = createContext<(change: Change) => void>(() => {});

/** Asks before something is changed: what it does, why, and the same as a command. */
export function useChange() {
  return useContext(Context);
}

export function ChangeProvider({ children }: { children: React.ReactNode }) {
  const [change, setChange] = useState<Change>();
  const close = useCallback(() => setChange(undefined), []);
  return (
    <Context value={setChange}>
      {children}
      {change && <ChangeDialog change={change} onClose={close} />}
    </Context>
  );
}

function ChangeDialog({ change, onClose }: { change: Change; onClose: () => void }) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const given = reason.trim() || undefined;

  const submit = async () => {
    setIsBusy(true);
    setError(undefined);
    try {
      await change.run(given);
      toast(change.done ?? `${change.title}: done`);
      onClose();
      void client.invalidateQueries();
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };

  return (
    <Dialog
      open
      onClose={onClose}
      title={change.title}
      description={change.description}
      footer={
        <>
          <div className="mr-auto flex">
            {change.cli && <Copy text={change.cli(given)}>Copy as CLI</Copy>}
            {change.curl && <Copy text={change.curl(given)}>Copy as curl</Copy>}
          </div>
          <Button look="ghost" onClick={onClose}>Cancel</Button>
          <Button look={change.isDangerous ? "danger" : "primary"} disabled={isBusy} onClick={() => void submit()} autoFocus={!change.takesReason}>
            {isBusy ? "Working…" : change.verb}
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) void submit();
        }}
      >
        {change.takesReason && (
          <TextField name="Reason" value={reason} onChange={setReason} placeholder="Why? Shown in the history and in the audit log" autoFocus />
        )}
        {error !== undefined && <p role="alert" className="mt-3 whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
      </form>
    </Dialog>
  );
}
