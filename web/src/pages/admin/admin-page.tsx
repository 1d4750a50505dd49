import { useMay } from "../../api/me";
import { useAddress } from "../../lib/address";
import { Page } from "../../ui/page";
import { Tabs } from "../../ui/tabs";
import { AuditLog } from "./audit-list";
import { Keys } from "./keys";
import { Sessions } from "./sessions";
import { System } from "./system";

/** The node and its store, keys, sessions, and who changed what. */
export function AdminPage() {
  const [{ tab = "system" }, setAddress] = useAddress();
  const isAdmin = useMay("admin");
  return (
    <Page title="Admin">
      <Tabs
        label="Parts of the administration"
        value={tab}
        onChange={(next) => setAddress({ tab: next === "system" ? undefined : next })}
        tabs={[
          { id: "system", name: "Node and store", content: <System /> },
          ...(isAdmin
            ? [
                { id: "audit", name: "Audit", content: <AuditLog /> },
                { id: "keys", name: "Keys", content: <Keys /> },
                { id: "sessions", name: "Sessions", content: <Sessions /> },
              ]
            : []),
        ]}
      />
    </Page>
  );
}
