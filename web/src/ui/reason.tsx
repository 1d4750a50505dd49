import { useState } from "react";
import { TextField } from "./field";

/** The server takes at most 1,000 bytes; a character has up to three of them. */
const MAX_CHARACTERS = 330;

export type Reason = { text: string; setText: (text: string) => void; given: string | undefined };

/** Why a person changes something. */
export function useReason(): Reason {
  const [text, setText] = useState("");
  return { text, setText, given: text.trim() || undefined };
}

export function ReasonField({ reason, autoFocus }: { reason: Reason; autoFocus?: boolean }) {
  return <TextField name="Reason" value={reason.text} onChange={reason.setText} placeholder="Why? Kept in the audit log" maxLength={MAX_CHARACTERS} autoFocus={autoFocus} />;
}
