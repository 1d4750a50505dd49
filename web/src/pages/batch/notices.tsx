import { Link } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { words } from "../../lib/format";
import { RowsTable } from "../../ui/rows-table";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";

/** Calls by which the batch notified people, and what became of them. */
export function Notices({ notices }: { notices: Schemas["Notice"][] }) {
  return (
    <div className="py-3">
      <RowsTable label="Notices" names={["About", "Phase", "Function", "State", "When", "Instance"]}>
        {notices.map((notice) => (
          <tr key={notice.instance} className="h-9 border-t border-line">
            <td className="pr-4 font-medium">{words(notice.event)}</td>
            <td className="pr-4">{notice.phase_name}</td>
            <td className="pr-4">{notice.function_name}</td>
            <td className="pr-4"><Status status={notice.state} />{notice.error_message && <span className="ml-2 text-bad">{notice.error_message}</span>}</td>
            <td className="pr-4 text-dim"><Time at={notice.ended_at ?? notice.created_at} /></td>
            <td><Link to="/instances/$id" params={{ id: notice.instance }} search={{}} className="text-accent-text hover:underline">its call</Link></td>
          </tr>
        ))}
      </RowsTable>
    </div>
  );
}
