import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, because, data, type Schemas } from "../../api/client";
import { usePages } from "../../api/pages";
import { cli, curl, withReason } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { SelectField, TextField } from "../../ui/field";
import { ListMenu } from "../../ui/list-menu";
import { Wide } from "../../ui/page";
import { ReasonField, useReason } from "../../ui/reason";
import { Badge } from "../../ui/status";
import { Empty, Unready, messageOf } from "../../ui/states";
import { Time } from "../../ui/time";

export function Keys() {
  const change = useChange();
  const [isNew, setIsNew] = useState(false);
  const keys = usePages(["keys"], (cursor) => data(api.GET("/v1/keys", { params: { query: { cursor } } })), (page) => page.keys);
  const revoke = (key: Schemas["Key"]) => change({
    title: `Revoke the key ${key.name}`, verb: "Revoke it", isDangerous: true, description: "It ceases to work within a few seconds on every node, with its sessions.",
    run: () => data(api.DELETE("/v1/keys/{id}", { params: { path: { id: key.id } } })), cli: () => cli("keys", "revoke", key.id), curl: () => curl("DELETE", `/v1/keys/${key.id}`),
  });
  if (!keys.data) return <Unready query={keys} />;
  return (
    <Wide label="Keys" className="p-5">
      <div className="mb-3 flex justify-end gap-2"><ListMenu name="keys" rows={() => keys.rows} command={["keys", "list"]} path="/v1/keys" /><Button look="primary" icon="plus" onClick={() => setIsNew(true)}>New key</Button></div>
      {keys.rows.length === 0 ? <Empty icon="gear" title="There are no keys">Without keys the server answers local requests only.</Empty> : (
        <table className="w-full text-left">
          <thead className="text-xs text-faint"><tr>{["Name", "Role", "May enter", "Created", "Last used", "Expires", ""].map((name, index) => <th key={index} className="h-8 border-b border-line pr-4 font-medium">{name || <span className="sr-only">Actions</span>}</th>)}</tr></thead>
          <tbody>
            {keys.rows.map((key) => (
              <tr key={key.id} className="h-9 border-b border-line/60">
                <td className="pr-4 font-medium" title={key.id}>{key.name}</td>
                <td className="pr-4"><Badge>{key.role}</Badge></td>
                <td className="pr-4 text-dim">{key.grants.map((grant) => `${grant.namespace}/${grant.tenant}`).join(", ")}</td>
                <td className="pr-4 text-dim"><Time at={key.created_at} /></td>
                <td className="pr-4 text-dim"><Time at={key.last_used_at} /></td>
                <td className="pr-4 text-dim"><Time at={key.expires_at} /></td>
                <td className="text-right"><Button look="ghost" onClick={() => revoke(key)}>Revoke</Button></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {isNew && <NewKey onClose={() => setIsNew(false)} />}
    </Wide>
  );
}

function NewKey({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Schemas["Role"]>("viewer");
  const [namespace, setNamespace] = useState("*");
  const [tenant, setTenant] = useState("*");
  const [secret, setSecret] = useState<string>();
  const [error, setError] = useState<unknown>();
  const reason = useReason();
  const body = { name, role, grants: [{ namespace, tenant }] };
  const submit = async () => {
    try {
      const created = await because(reason.given, () => data(api.POST("/v1/keys", { body })));
      setSecret(created.secret);
      void client.invalidateQueries({ queryKey: ["keys"] });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New key"
      footer={
        secret ? (
          <Button look="primary" onClick={onClose}>Done</Button>
        ) : (
          <>
            <div className="mr-auto flex">
              <Copy text={cli("keys", "create", "--name", name || "NAME", "--role", role, "--grant", `${namespace}/${tenant}`)}>Copy as CLI</Copy>
              <Copy text={withReason(curl("POST", "/v1/keys", body), reason.given)}>Copy as curl</Copy>
            </div>
            <Button look="primary" disabled={name === ""} onClick={() => void submit()}>Create</Button>
          </>
        )
      }
    >
      {secret ? (
        <div className="flex flex-col gap-2">
          <p>The secret is shown once, here and nowhere else:</p>
          <div className="flex items-center gap-2 rounded-md border border-line bg-bg p-2"><code className="min-w-0 flex-1 font-mono text-xs break-all">{secret}</code><Copy text={secret} label="Copy the secret" /></div>
        </div>
      ) : (
        <form className="grid grid-cols-2 gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
          <TextField name="Name" value={name} onChange={setName} autoFocus />
          <SelectField name="Role" value={role} onChange={(value) => setRole(value as Schemas["Role"])} options={[["viewer", "viewer"], ["operator", "operator"], ["worker", "worker"], ["admin", "admin"]]} />
          <TextField name="Namespace" value={namespace} onChange={setNamespace} hint="* is all" />
          <TextField name="Tenant" value={tenant} onChange={setTenant} hint="* is all" />
          <div className="col-span-2"><ReasonField reason={reason} /></div>
          {error !== undefined && <p role="alert" className="col-span-2 whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
          <button type="submit" hidden />
        </form>
      )}
    </Dialog>
  );
}
