import { useQueryClient } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useState } from "react";
import { because } from "../api/client";
import { withReason } from "../lib/command";
import { Button } from "../ui/button";
import { Copy } from "../ui/copy";
import { Dialog } from "../ui/dialog";
import { ReasonField, useReason } from "../ui/reason";
import { messageOf } from "../ui/states";
import { toast } from "./toasts";

export type Change = {
  title: string;
  description?: React.ReactNode;
  /** The word on the button. */
  verb: string;
  isDangerous?: boolean;
  /** Whether the body of the request has the reason, too. Without it the header alone has it, for the audit log. */
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
  const reason = useReason();
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const { given } = reason;

  const submit = async () => {
    setIsBusy(true);
    setError(undefined);
    try {
      await because(given, () => change.run(given));
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
            {change.curl && <Copy text={change.takesReason ? change.curl(given) : withReason(change.curl(given), given)}>Copy as curl</Copy>}
          </div>
          <Button look="ghost" onClick={onClose}>Cancel</Button>
          <Button look={change.isDangerous ? "danger" : "primary"} disabled={isBusy} onClick={() => void submit()}>
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
        <ReasonField reason={reason} autoFocus />
        {error !== undefined && <p role="alert" className="mt-3 whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
      </form>
    </Dialog>
  );
}
