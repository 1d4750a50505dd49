import { type Node, useNodes, useSystem } from "../../api/server";
import { count } from "../../lib/format";
import { Figures } from "../../ui/figures";
import { ListMenu } from "../../ui/list-menu";
import { Panel } from "../../ui/page";
import { RowsTable } from "../../ui/rows-table";
import { Badge, Status } from "../../ui/status";
import { Unready } from "../../ui/states";
import { Time } from "../../ui/time";

/** The nodes of the last hour: which work, which have stopped, and which are lost. */
export function Nodes() {
  const query = useNodes();
  const answering = useSystem().data?.node;
  if (!query.data) return <Unready query={query} />;
  const { nodes } = query.data;
  const up = nodes.filter((node) => node.state === "up");
  const lost = nodes.filter((node) => node.state === "lost").length;
  const versions = [...new Set(up.map((node) => node.version))];
  const total = (field: "orchestrations" | "functions") => count(up.reduce((sum, node) => sum + node[field], 0));
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-5 p-5">
      <Figures
        figures={[
          ["nodes up", count(up.length)],
          ["lost in the last hour", count(lost), lost > 0 ? "text-bad" : ""],
          ["turns at once", total("orchestrations")],
          ["functions at once", total("functions")],
        ]}
      />
      {versions.length > 1 && <p role="note" className="text-warn">Nodes of {versions.length} versions work side by side: {versions.join(", ")}.</p>}
      <Panel title="Nodes" aside={<ListMenu name="nodes" rows={() => nodes} command={["nodes"]} path="/v1/nodes" />}>
        <RowsTable label="Nodes" names={["Node", "State", "Version", "Roles", "Tags", "At once", "Started", "Last heard of"]}>
          {nodes.map((node) => <Row key={`${node.node} ${node.started_at}`} node={node} isAnswering={node.node === answering} />)}
        </RowsTable>
      </Panel>
      <p className="text-xs text-faint">A node is lost if it was killed or cannot reach the store, and no node has taken its place. Nodes report every ten seconds.</p>
    </div>
  );
}

function Row({ node, isAnswering }: { node: Node; isAnswering: boolean }) {
  return (
    <tr className="h-9 border-t border-line">
      <td className="max-w-72 pr-4"><span className="flex items-center gap-2"><span className="truncate font-medium" title={node.node}>{node.node}</span>{isAnswering && <Badge tone="info">this page</Badge>}</span></td>
      <td className="pr-4"><Status status={node.state} /></td>
      <td className="pr-4">{node.version}</td>
      <td className="pr-4"><Badges names={node.roles} /></td>
      <td className="pr-4"><Badges names={node.tags} /></td>
      <td className="pr-4 whitespace-nowrap text-dim tabular-nums">{count(node.orchestrations)} turns, {count(node.functions)} functions</td>
      <td className="pr-4 text-dim"><Time at={node.started_at} /></td>
      <td className="text-dim"><Time at={node.stopped_at ?? node.last_seen_at} /></td>
    </tr>
  );
}

function Badges({ names }: { names: string[] }) {
  if (names.length === 0) return <span className="text-faint">–</span>;
  return <span className="flex flex-wrap gap-1">{names.map((name) => <Badge key={name}>{name}</Badge>)}</span>;
}
