import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { api, data } from "../../api/client";
import { type Hook, hookTarget, useDeliveries, verificationOf } from "../../api/hooks";
import { useMay } from "../../api/me";
import { useScope } from "../../api/scope";
import { useAddress } from "../../lib/address";
import { cli, curl, quoted } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Json } from "../../ui/json";
import { Facts, Page } from "../../ui/page";
import { Badge } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Tabs } from "../../ui/tabs";
import { Audit } from "../admin/audit-list";
import { Deliveries } from "./deliveries";
import { HookDialog } from "./hook-dialog";
import { SignatureTester } from "./signature-tester";
import { urlOf } from "./webhooks-page";

export function WebhookPage() {
  const { name } = useParams({ strict: false }) as { name: string };
  const { namespace } = useScope();
  const [{ tab = "deliveries" }, setAddress] = useAddress();
  const isAdmin = useMay("admin");
  const [isEditing, setIsEditing] = useState(false);
  const query = useQuery({ queryKey: ["hooks", namespace, name], queryFn: () => data(api.GET("/v1/hooks/{namespace}/{route}", { params: { path: { namespace, route: name } } })) });
  const deliveries = useDeliveries(name);
  const hook = query.data;
  if (!hook) return <Page title={name}><Unready query={query} /></Page>;
  return (
    <Page title={name} actions={<Actions hook={hook} onEdit={() => setIsEditing(true)} />}>
      <div className="flex h-full flex-col">
        <div className="border-b border-line px-5 py-3">
          <Facts
            facts={[
              ["Address", <span key="url" className="-my-1.5 flex items-center gap-1"><code className="font-mono text-xs break-all">{urlOf(hook)}</code><Copy text={urlOf(hook)} label="Copy the address" /></span>],
              ["Runs", hookTarget(hook)],
              ["Verification", <Badge key="verify" tone={verificationOf(hook) === "none" ? "warn" : "mute"}>{verificationOf(hook)}</Badge>],
            ]}
          />
        </div>
        <Tabs
          label="Parts of the route"
          value={tab}
          onChange={(next) => setAddress({ tab: next === "deliveries" ? undefined : next })}
          tabs={[
            { id: "deliveries", name: "Live deliveries", content: <Deliveries query={deliveries} /> },
            { id: "declaration", name: "Declaration", content: <div className="p-5"><Json value={hook.declaration} label="Declaration" /></div> },
            { id: "test", name: "Test it", content: <SignatureTester hook={hook} url={urlOf(hook)} /> },
            ...(isAdmin ? [{ id: "audit", name: "Audit", content: <Audit resource={`/v1/hooks/${namespace}/${name}`} /> }] : []),
          ]}
        />
      </div>
      {isEditing && <HookDialog hook={hook} onClose={() => setIsEditing(false)} />}
    </Page>
  );
}

function Actions({ hook, onEdit }: { hook: Hook; onEdit: () => void }) {
  const change = useChange();
  const navigate = useNavigate();
  const mayChange = useMay("operate");
  const { namespace } = useScope();
  if (!mayChange) return <Copy text={`curl ${quoted(urlOf(hook))} -d '{}'`}>Copy as curl</Copy>;
  const remove = () => change({
    title: `Delete the route ${hook.name}`, verb: "Delete it", isDangerous: true, description: "Senders get 404 from then on. Payloads stay until their time is over.",
    run: async () => {
      await data(api.DELETE("/v1/hooks/{namespace}/{route}", { params: { path: { namespace, route: hook.name } } }));
      void navigate({ to: "/webhooks", search: {} });
    },
    cli: () => cli("hook", "delete", hook.name), curl: () => curl("DELETE", `/v1/hooks/${namespace}/${hook.name}`),
  });
  return <><Button onClick={onEdit}>Edit</Button><Button look="danger" onClick={remove}>Delete</Button></>;
}
