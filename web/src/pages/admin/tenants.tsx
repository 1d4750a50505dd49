import { Link } from "@tanstack/react-router";
import { useMe } from "../../api/me";
import { scopeSearch, useScope } from "../../api/scope";
import { type TenantRow, useTenants } from "../../api/server";
import { count } from "../../lib/format";
import { ListMenu } from "../../ui/list-menu";
import { Panel } from "../../ui/page";
import { RowsTable } from "../../ui/rows-table";
import { Badge } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Time } from "../../ui/time";

const QUERY = { shipped: "busiest-tenants" };

/** Tenants with recent instances, and those that the caller's key is for. */
export function Tenants() {
  const query = useTenants();
  const scope = useScope();
  const grants = useMe().data?.grants ?? [];
  if (!query.data) return <Unready query={query} />;
  const { rows, truncated } = query.data;
  const has = (namespace: string, tenant: string) => rows.some((row) => row.namespace === namespace && row.tenant === tenant);
  const others = [scope, ...grants].filter(({ namespace, tenant }, index, all) => namespace !== "*" && tenant !== "*" && !has(namespace, tenant) && all.findIndex((each) => each.namespace === namespace && each.tenant === tenant) === index);
  const all: (Partial<TenantRow> & { namespace: string; tenant: string })[] = [...rows, ...others.map(({ namespace, tenant }) => ({ namespace, tenant }))];
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-3 p-5">
      <Panel title="Namespaces and tenants" aside={<ListMenu name="tenants" rows={() => all} command={["sql", "--query", QUERY.shipped]} path="/v1/sql" body={QUERY} />}>
        <RowsTable label="Namespaces and tenants" names={["Namespace", "Tenant", "Instances", "Open", "Failed", "Last start"]}>
          {all.map((row) => {
            const { namespace, tenant } = row;
            const isCurrent = namespace === scope.namespace && tenant === scope.tenant;
            return (
              <tr key={`${namespace}/${tenant}`} className="h-9 border-t border-line">
                <td className="pr-4 text-dim">{namespace}</td>
                <td className="pr-4">
                  <Link to="/" search={{ namespace: undefined, tenant: undefined, ...scopeSearch({ namespace, tenant }) }} className="font-medium hover:underline">{tenant}</Link>
                  {isCurrent && <span className="ml-2"><Badge tone="info">shown</Badge></span>}
                </td>
                <td className="pr-4 tabular-nums">{row.instances === undefined ? <span className="text-faint">–</span> : count(row.instances)}</td>
                <td className="pr-4 tabular-nums">{row.open === undefined ? <span className="text-faint">–</span> : count(row.open)}</td>
                <td className={`pr-4 tabular-nums ${row.failed ? "text-bad" : "text-faint"}`}>{row.failed === undefined ? "–" : count(row.failed)}</td>
                <td className="text-dim"><Time at={row.last} /></td>
              </tr>
            );
          })}
        </RowsTable>
      </Panel>
      <p className="text-xs text-faint">
        Numbers are of instances that were created in the last 24 hours. Tenants without any are listed only if the key names them. A tenant comes into being by its first use.{truncated && " There are more tenants than are shown."}
      </p>
    </div>
  );
}
