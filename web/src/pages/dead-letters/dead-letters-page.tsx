import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, data, type Schemas } from "../../api/client";
import { useMay } from "../../api/me";
import { usePages } from "../../api/pages";
import { useAddress } from "../../lib/address";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Id } from "../../ui/id";
import { Json } from "../../ui/json";
import { ListPage } from "../../ui/list-page";
import { Facts, Section } from "../../ui/page";
import { Badge } from "../../ui/status";
import { Unready } from "../../ui/states";
import type { Column } from "../../ui/table";
import { Time } from "../../ui/time";
import { Body } from "../webhooks/payload-dialog";

type Letter = Schemas["DeadLetter"];

const COLUMNS: Column<Letter>[] = [
  { id: "what", name: "What", width: "100px", cell: (row) => <Badge tone="bad">{row.what}</Badge>, sort: (row) => row.what },
  { id: "name", name: "Name", width: "minmax(120px,1fr)", cell: (row) => <span className="font-medium">{row.name}</span>, sort: (row) => row.name },
  { id: "instance", name: "Instance", width: "minmax(180px,1.5fr)", cell: (row) => <Link to="/instances/$id" params={{ id: row.instance }} search={{}} className="hover:underline"><Id id={row.instance} /></Link>, sort: (row) => row.instance },
  { id: "reason", name: "Why", width: "minmax(200px,2fr)", cell: (row) => <span className="text-bad" title={row.reason}>{row.reason}</span> },
  { id: "deliveries", name: "Deliveries", width: "90px", right: true, cell: (row) => row.deliveries, sort: (row) => row.deliveries },
  { id: "at", name: "Given up", width: "120px", cell: (row) => <Time at={row.given_up_at} />, sort: (row) => Date.parse(row.given_up_at) },
];

/** Messages, turns and activities that were given up. */
export function DeadLettersPage() {
  const [{ name: open }, setAddress] = useAddress();
  const setOpen = (id: string | undefined) => setAddress({ name: id });
  const letters = usePages(["live", "dead-letters"], (cursor) => data(api.GET("/v1/dead-letters", { params: { query: { cursor, limit: 100 } } })), (page) => page.dead_letters);
  return (
    <>
      <ListPage
        title="Dead letters"
        same={{ command: ["dead-letters", "list"], path: "/v1/dead-letters" }}
        query={letters}
        rows={letters.rows}
        columns={COLUMNS}
        rowId={(row) => row.id}
        textOf={(row) => [row.name, row.instance, row.reason, row.what]}
        onOpen={(row) => setOpen(row.id)}
        empty={{ icon: "check", title: "No dead letters", text: "Messages, turns and activities that are given up after too many deliveries appear here. They are kept for 30 days." }}
      />
      {open && <Detail id={open} onClose={() => setOpen(undefined)} />}
    </>
  );
}

function Detail({ id, onClose }: { id: string; onClose: () => void }) {
  const change = useChange();
  const mayChange = useMay("operate");
  const query = useQuery({ queryKey: ["live", "dead-letters", id], queryFn: () => data(api.GET("/v1/dead-letters/{id}", { params: { path: { id } } })) });
  const letter = query.data;
  const params = { path: { id } };
  const resubmit = () => {
    onClose();
    change({
      title: "Resubmit this dead letter", verb: "Resubmit it",
      description: "A message is sent again; for a turn or an activity the next execution of its instance begins, as by a restart.",
      run: () => data(api.POST("/v1/dead-letters/{id}/resubmit", { params })), done: "Resubmitted", cli: () => cli("dead-letters", "resubmit", id), curl: () => curl("POST", `/v1/dead-letters/${id}/resubmit`),
    });
  };
  const discard = () => {
    onClose();
    change({
      title: "Discard this dead letter", verb: "Discard it", isDangerous: true, description: "It is deleted with what it carried.",
      run: () => data(api.DELETE("/v1/dead-letters/{id}", { params })), done: "Discarded", cli: () => cli("dead-letters", "discard", id), curl: () => curl("DELETE", `/v1/dead-letters/${id}`),
    });
  };
  return (
    <Dialog open wide onClose={onClose} title="Dead letter" footer={mayChange && <><Button look="danger" onClick={discard}>Discard</Button><Button look="primary" onClick={resubmit}>Resubmit</Button></>}>
      {!letter ? <Unready query={query} /> : (
        <div className="flex flex-col gap-4">
          <p className="break-words whitespace-pre-wrap text-bad">{letter.reason}</p>
          <Facts facts={[
            ["What", letter.what],
            ["Name", letter.name],
            ["Instance", <Link key="instance" to="/instances/$id" params={{ id: letter.instance }} search={{}} className="break-all text-accent-text hover:underline">{letter.instance}</Link>],
            ["Deliveries", letter.deliveries],
            ["Given up", <Time key="at" at={letter.given_up_at} absolute />],
            ["Kept until", letter.expires_at && <Time key="until" at={letter.expires_at} absolute />],
          ]} />
          {letter.payload !== undefined && letter.payload !== null ? <Section name="Payload"><Json value={letter.payload} label="Payload" /></Section> : letter.raw && <Section name="Payload, which cannot be read"><Body base64={letter.raw} /></Section>}
        </div>
      )}
    </Dialog>
  );
}
