import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, data } from "../../api/client";
import { type Hook, verificationOf } from "../../api/hooks";
import { useMay } from "../../api/me";
import { useScope } from "../../api/scope";
import { quoted } from "../../lib/command";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { AreaField, TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";

/** Signs a body in the browser, as the sender would, makes the curl line, and asks the server whether the route takes it. The secret goes nowhere. */
export function SignatureTester({ hook, url }: { hook: Hook; url: string }) {
  const kind = verificationOf(hook);
  const [secret, setSecret] = useState("");
  const [body, setBody] = useState('{"hello": "world"}');
  const [line, setLine] = useState("");
  const [headers, setHeaders] = useState<string[]>();
  const [problem, setProblem] = useState<string>();
  const mayTest = useMay("operate");
  const { namespace } = useScope();
  const test = useMutation({
    mutationFn: (signed: string[]) =>
      data(api.POST("/v1/hooks/{namespace}/{route}/test", {
        params: { path: { namespace, route: hook.name } },
        body: { body, headers: Object.fromEntries([...signed, "content-type: application/json"].map((header) => [header.slice(0, header.indexOf(":")), header.slice(header.indexOf(":") + 1).trim()])) },
      })),
  });
  const make = async (nextSecret: string, nextBody: string) => {
    setSecret(nextSecret);
    setBody(nextBody);
    setHeaders(undefined);
    test.reset();
    try {
      const signed = await headersOf(kind, hook, nextSecret, nextBody);
      setProblem(undefined);
      setHeaders(signed);
      setLine(["curl", quoted(url), ...signed.flatMap((header) => ["-H", quoted(header)]), "-H", "'content-type: application/json'", "-d", quoted(nextBody)].join(" "));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  // Without a secret to wait for, the line is there at once.
  useEffect(() => {
    if (kind === "none") void make("", body);
  }, [kind]);
  return (
    <div className="flex max-w-2xl flex-col gap-3 p-5">
      {kind !== "none" && <TextField name={`Secret (${kind})`} type="password" value={secret} onChange={(value) => void make(value, body)} hint="It is used on this page only, and neither stored nor sent." />}
      <AreaField name="Body" value={body} onChange={(value) => void make(secret, value)} rows={5} />
      {problem && <p role="alert" className="text-bad">{problem}</p>}
      {line && (
        <div className="rounded-md border border-line bg-bg p-3">
          <code className="block font-mono text-xs break-all whitespace-pre-wrap">{line}</code>
          <div className="mt-2 flex flex-wrap items-center gap-2">
            <Copy text={line}>Copy the curl line</Copy>
            {mayTest && headers && <Button disabled={test.isPending} onClick={() => test.mutate(headers)}>Would the route take it?</Button>}
          </div>
        </div>
      )}
      {test.data && (
        <p role="status" className={test.data.accepted ? "text-good" : "text-bad"}>
          {test.data.accepted ? "The route would take this request now. Nothing was sent to it." : `The route would refuse it: ${test.data.detail ?? test.data.reason ?? "no reason is given"}`}
        </p>
      )}
      {test.error && <p role="alert" className="text-bad">{messageOf(test.error)}</p>}
    </div>
  );
}

async function hmac(secret: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array> {
  if (!crypto.subtle) throw new Error("This browser signs only on HTTPS or on localhost.");
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
}

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function encoded(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new TextEncoder().encode(text));
}

async function headersOf(kind: string, hook: Hook, secret: string, body: string): Promise<string[]> {
  if (kind === "none") return [];
  if (secret === "") throw new Error("Give the secret to sign the body.");
  const now = Math.floor(Date.now() / 1_000);
  const { header } = (hook.declaration as { verification?: { header?: string } }).verification ?? {};
  switch (kind) {
    case "github":
      return [`x-hub-signature-256: sha256=${hex(await hmac(encoded(secret), body))}`];
    case "stripe":
      return [`stripe-signature: t=${now},v1=${hex(await hmac(encoded(secret), `${now}.${body}`))}`];
    case "standard_webhooks": {
      const id = crypto.randomUUID();
      const key = secret.startsWith("whsec_") ? Uint8Array.from(atob(secret.slice(6)), (char) => char.charCodeAt(0)) : encoded(secret);
      const signature = btoa(String.fromCharCode(...(await hmac(key, `${id}.${now}.${body}`))));
      return [`webhook-id: ${id}`, `webhook-timestamp: ${now}`, `webhook-signature: v1,${signature}`];
    }
    case "shared_secret":
      return [`${header ?? "x-webhook-secret"}: ${secret}`];
    default:
      throw new Error(`The page cannot sign for “${kind}”.`);
  }
}
