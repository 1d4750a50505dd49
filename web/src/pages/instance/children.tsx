import { lazy, Suspense } from "react";
import { type useTree, hasEnded, nameOf } from "../../api/instances";
import { Empty, Loading, Unready } from "../../ui/states";

const Graph = lazy(() => import("../../ui/graph"));

export function ChildrenGraph({ id, tree }: { id: string; tree: ReturnType<typeof useTree> }) {
  if (!tree.data) return <Unready query={tree} />;
  if (tree.rows.length < 2) return <Empty icon="graph" title="It has no children" />;
  const nodes = tree.rows.map((row) => ({
    id: row.id,
    name: nameOf(row),
    detail: row.id,
    status: row.status,
    from: row.created_at,
    until: row.completed_at ?? undefined,
    ended: hasEnded(row.status),
    to: { to: "/instances/$id" as const, params: { id: row.id } },
    isMarked: row.id === id,
  }));
  const edges = tree.rows.flatMap((row) => (row.parent ? [{ from: row.parent, to: row.id }] : []));
  return (
    <Suspense fallback={<Loading />}>
      <Graph label="Children" nodes={nodes} edges={edges} />
    </Suspense>
  );
}
