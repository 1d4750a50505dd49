import { useState } from "react";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { TextField } from "./field";

export function NameDialog({ onClose, onName }: { onClose: () => void; onName: (name: string) => void }) {
  const [name, setName] = useState("");
  return (
    <Dialog open onClose={onClose} title="Save for the whole tenant" footer={<Button look="primary" disabled={!name.trim()} onClick={() => onName(name.trim())}>Save</Button>}>
      <form onSubmit={(event) => { event.preventDefault(); if (name.trim()) onName(name.trim()); }}>
        <TextField name="Name" value={name} onChange={setName} autoFocus />
      </form>
    </Dialog>
  );
}
