import { useState } from "react";
import { because } from "../api/client";
import { withReason } from "../lib/command";
import { Button } from "../ui/button";
import { Copy } from "../ui/copy";
import { Dialog } from "../ui/dialog";
import { ReasonField, useReason } from "../ui/reason";
import { messageOf } from "../ui/states";
import { toast } from "./toasts";

export type Submission = {
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

type Props = Submission & {
  wide?: boolean;
  /** Whether the fields are such that it can be sent. */
  isReady?: boolean;
  /** Buttons before the one that sends. */
  others?: React.ReactNode;
  /** The reason has the focus: there are no other fields. */
  isBare?: boolean;
  onClose: () => void;
  onDone?: () => void;
  children?: React.ReactNode;
};

/** A dialog that changes something: its fields, the reason, the same as a command, and the error if it is refused. Sends once at a time. */
export function FormDialog({ isReady = true, isBare, wide, others, onClose, onDone, children, ...change }: Props) {
  const reason = useReason();
  const { given } = reason;
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const submit = async () => {
    if (isBusy || !isReady) return;
    setIsBusy(true);
    setError(undefined);
    try {
      await because(given, () => change.run(given));
      toast(change.done ?? `${change.title}: done`);
      onClose();
      onDone?.();
    } catch (failure) {
      setError(failure);
      setIsBusy(false);
    }
  };
  return (
    <Dialog
      open
      wide={wide}
      onClose={onClose}
      title={change.title}
      description={change.description}
      footer={
        <>
          <div className="mr-auto flex flex-wrap">
            {change.cli && <Copy text={change.cli(given)}>Copy as CLI</Copy>}
            {change.curl && <Copy text={change.takesReason ? change.curl(given) : withReason(change.curl(given), given)}>Copy as curl</Copy>}
          </div>
          <Button look="ghost" onClick={onClose}>Cancel</Button>
          {others}
          <Button look={change.isDangerous ? "danger" : "primary"} disabled={isBusy || !isReady} onClick={() => void submit()}>
            {isBusy ? "Working…" : change.verb}
          </Button>
        </>
      }
    >
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        {children}
        <ReasonField reason={reason} autoFocus={isBare} />
        {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
