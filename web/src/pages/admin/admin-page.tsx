import { useMay, useMe } from "../../api/me";
import { useAddress } from "../../lib/address";
import { Page } from "../../ui/page";
import { Tabs } from "../../ui/tabs";
import { AuditLog } from "./audit-list";
import { Keys } from "./keys";
import { Nodes } from "./nodes";
import { Sessions } from "./sessions";
import { Settings } from "./settings";
import { Store } from "./store";
import { Tenants } from "./tenants";
import { Versions } from "./versions";

/** Nodes, the store, versions, settings, tenants, keys, sessions, and who changed what: each to callers that may see it. */
export function AdminPage() {
  const [{ tab }, setAddress] = useAddress();
  const isAdmin = useMay("admin");
  const seesServer = useMay("system");
  const hasKeys = useMe().data?.authentication === "keys";
  const tabs = [
    ...(seesServer ? [{ id: "nodes", name: "Nodes", content: <Nodes /> }, { id: "store", name: "Store", content: <Store /> }] : []),
    { id: "versions", name: "Versions", content: <Versions /> },
    { id: "tenants", name: "Tenants", content: <Tenants /> },
    ...(isAdmin ? [{ id: "settings", name: "Settings", content: <Settings /> }, { id: "audit", name: "Audit", content: <AuditLog /> }, { id: "keys", name: "Keys", content: <Keys /> }] : []),
    ...(isAdmin || hasKeys ? [{ id: "sessions", name: "Sessions", content: <Sessions /> }] : []),
  ];
  return (
    <Page title="Admin">
      <Tabs
        label="Parts of the administration"
        value={tab ?? ""}
        onChange={(next) => setAddress({ tab: next === tabs[0]?.id ? undefined : next, q: undefined, name: undefined, view: undefined })}
        tabs={tabs}
      />
    </Page>
  );
}
