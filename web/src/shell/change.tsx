import { useQueryClient } from "@tanstack/react-query";
import { createContext, useCallback, useContext, useState } from "react";
import { FormDialog, type Submission } from "./form-dialog";

/** A change that needs nothing but a reason. */
export type Change = Submission;

const Context = createContext<(change: Change) => void>(() => {});

/** Asks before something is changed: what it does, why, and the same as a command. */
export function useChange() {
  return useContext(Context);
}

export function ChangeProvider({ children }: { children: React.ReactNode }) {
  const client = useQueryClient();
  const [change, setChange] = useState<Change>();
  const close = useCallback(() => setChange(undefined), []);
  return (
    <Context value={setChange}>
      {children}
      {change && <FormDialog {...change} isBare onClose={close} onDone={() => void client.invalidateQueries()} />}
    </Context>
  );
}
