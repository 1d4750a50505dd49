import { type Instance, nameOf } from "../../api/instances";
import { csv, download } from "../../lib/download";

export function exportRows(rows: Instance[]) {
  const columns = ["id", "status", "runs", "kind", "created_at", "completed_at", "failure_code", "failure", "labels"];
  const cells = rows.map((row) => [
    row.id, row.status, nameOf(row), row.kind ?? "", row.created_at, row.completed_at ?? "", row.failure?.code ?? row.failure?.category ?? "", row.failure?.message ?? "", row.labels ?? {},
  ]);
  download("instances.csv", "text/csv", csv(columns, cells));
}
