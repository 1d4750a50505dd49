import dagre from "@dagrejs/dagre";
import { Link } from "@tanstack/react-router";
import { Background, Controls, type Edge, Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useMemo } from "react";
import { classes } from "../lib/classes";
import { Empty } from "./states";
import { Status } from "./status";
import { Span } from "./time";

export type GraphNode = {
  id: string;
  name: string;
  detail?: string;
  /** Absent for what has no state, as the tasks of a document. */
  status?: string;
  from?: string;
  until?: string;
  ended: boolean;
  to?: { to: string; params: Record<string, string> };
  isMarked?: boolean;
  onSelect?: () => void;
};
export type GraphEdge = { from: string; to: string; isCritical?: boolean };

const WIDTH = 210;
const HEIGHT = 62;
const MOST_NODES = 600;

/** A graph laid out from left to right. Loaded only by pages that show one. */
export default function Graph({ nodes, edges, label }: { nodes: GraphNode[]; edges: GraphEdge[]; label: string }) {
  const shape = nodes.map((node) => node.id).join("\n") + edges.map((edge) => `${edge.from}>${edge.to}`).join("\n");
  // The layout follows the shape alone: a change of status moves nothing.
  const places = useMemo(() => layout(nodes, edges), [shape]);
  if (nodes.length > MOST_NODES) return <Empty icon="graph" title={`${nodes.length} nodes are too many for a graph`}>The list has them all.</Empty>;
  const flowNodes: Node<{ node: GraphNode }>[] = nodes.map((node) => ({
    id: node.id,
    type: "card",
    position: places.get(node.id) ?? { x: 0, y: 0 },
    data: { node },
    draggable: false,
    connectable: false,
  }));
  const flowEdges: Edge[] = edges.map((edge) => ({
    id: `${edge.from} ${edge.to}`,
    source: edge.from,
    target: edge.to,
    type: "smoothstep",
    style: { stroke: edge.isCritical ? "var(--accent)" : "var(--line-strong)", strokeWidth: edge.isCritical ? 2 : 1.2 },
  }));
  return (
    <div className="h-full min-h-96" role="group" aria-label={label}>
      <ReactFlow nodes={flowNodes} edges={flowEdges} nodeTypes={NODE_TYPES} fitView fitViewOptions={{ maxZoom: 1, padding: 0.15 }} minZoom={0.1} nodesFocusable={false} edgesFocusable={false} proOptions={{ hideAttribution: true }}>
        <Background color="var(--line)" gap={20} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}

const NODE_TYPES = { card: Card };

function Card({ data }: NodeProps<Node<{ node: GraphNode }>>) {
  const { node } = data;
  const content = (
    <>
      <span className="block truncate font-medium" title={node.name}>{node.name}</span>
      {node.status && (
        <span className="flex items-center justify-between gap-2 text-xs text-dim">
          <Status status={node.status} />
          {node.from && <Span from={node.from} until={node.until} ended={node.ended} />}
        </span>
      )}
      {node.detail && <span className="block truncate text-[10.5px] text-faint" title={node.detail}>{node.detail}</span>}
    </>
  );
  const look = classes("nodrag nopan block rounded-lg border bg-raised px-3 py-1.5 text-left text-text hover:border-line-strong", node.isMarked ? "border-accent" : "border-line");
  return (
    <div style={{ width: WIDTH, height: HEIGHT }}>
      <Handle type="target" position={Position.Left} className="opacity-0" />
      {node.onSelect ? (
        <button type="button" onClick={node.onSelect} className={look} style={{ width: WIDTH, minHeight: HEIGHT }}>{content}</button>
      ) : node.to ? (
        <Link to={node.to.to} params={node.to.params} search={{}} className={look}>{content}</Link>
      ) : (
        <div className={look}>{content}</div>
      )}
      <Handle type="source" position={Position.Right} className="opacity-0" />
    </div>
  );
}

function layout(nodes: GraphNode[], edges: GraphEdge[]): Map<string, { x: number; y: number }> {
  if (nodes.length > MOST_NODES) return new Map();
  const graph = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", nodesep: 18, ranksep: 56 }).setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: WIDTH, height: HEIGHT });
  for (const edge of edges) {
    if (graph.hasNode(edge.from) && graph.hasNode(edge.to)) graph.setEdge(edge.from, edge.to);
  }
  dagre.layout(graph);
  return new Map(nodes.map((node) => {
    const { x, y } = graph.node(node.id);
    return [node.id, { x: x - WIDTH / 2, y: y - HEIGHT / 2 }];
  }));
}
