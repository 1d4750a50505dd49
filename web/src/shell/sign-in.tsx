import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/client";
import { Button } from "../ui/button";
import { TextField } from "../ui/field";
import { messageOf } from "../ui/states";
import { toast } from "./toasts";

/** Ends the session of this browser. */
export async function signOut() {
  try {
    await request("/v1/sessions/current", { method: "DELETE" });
    window.location.reload();
  } catch (failure) {
    toast(messageOf(failure), true);
  }
}

/** Exchanges an API key for a session cookie. The key itself is kept nowhere in the browser. */
export function SignIn() {
  const client = useQueryClient();
  const [key, setKey] = useState("");
  const [error, setError] = useState<string>();
  const submit = async () => {
    try {
      await request("/v1/sessions", { method: "POST", body: { key: key.trim() } });
      setKey("");
      await client.resetQueries();
    } catch (failure) {
      setError(messageOf(failure));
    }
  };
  return (
    <main className="grid h-full place-items-center p-6">
      <form
        className="flex w-full max-w-sm flex-col gap-4 rounded-xl border border-line bg-panel p-6 shadow-pop"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div className="flex items-center gap-2.5">
          <img src="./icon.svg" width="26" height="26" alt="" />
          <h1 className="text-lg font-semibold">Sign in to Segno</h1>
        </div>
        <TextField
          name="API key"
          type="password"
          value={key}
          onChange={setKey}
          error={error}
          autoFocus
          hint={<>Made with <code className="font-mono">segno keys create</code>. It becomes a session of this browser and is not stored.</>}
        />
        <Button type="submit" look="primary" disabled={key.trim() === ""} className="h-8">Sign in</Button>
      </form>
    </main>
  );
}
