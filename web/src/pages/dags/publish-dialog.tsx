import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, data } from "../../api/client";
import { curl } from "../../lib/command";
import { problemsOf } from "../../lib/problems";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { LazyEditor } from "../../ui/lazy-editor";

const EXAMPLE = `name: hello
tasks:
  - key: first
    function: echo
    input: {name: Ada}
  - key: second
    function: greet
    depends_on: first
    input: "{{ tasks.first.output.name }}"
`;

/** Publishes a DAG; problems are shown where they are in the document. */
export function PublishDialog({ document, onClose }: { document?: string; onClose: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [text, setText] = useState(document ?? EXAMPLE);
  const [error, setError] = useState<unknown>();
  const problems = useMemo(() => problemsOf(error), [error]);
  const publish = async () => {
    try {
      const version = await data(api.POST("/v1/dags", { body: { document: text } }));
      toast(`${version.name} version ${version.version} published`);
      onClose();
      void client.invalidateQueries({ queryKey: ["dags"] });
      void navigate({ to: "/dags/$name", params: { name: version.name }, search: {} });
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog open wide onClose={onClose} title="Publish a DAG" footer={<><div className="mr-auto"><Copy text={curl("POST", "/v1/dags", { document: text })}>Copy as curl</Copy></div><Button look="primary" onClick={() => void publish()}>Publish</Button></>}>
      <div className="h-80"><LazyEditor label="DAG" language="yaml" value={text} onChange={setText} problems={problems} /></div>
      <div role="alert" className="mt-2">{problems.map((problem, index) => <p key={index} className="text-bad">{problem.line}:{problem.column} {problem.text}</p>)}</div>
    </Dialog>
  );
}
