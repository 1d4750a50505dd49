import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, data } from "../../api/client";
import { cli, curl, piped } from "../../lib/command";
import { type Problem, problemsOf } from "../../lib/problems";
import { FormDialog } from "../../shell/form-dialog";
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
  const [problems, setProblems] = useState<Problem[]>([]);
  const publish = async () => {
    setProblems([]);
    try {
      const version = await data(api.POST("/v1/dags", { body: { document: text } }));
      void navigate({ to: "/dags/$name", params: { name: version.name }, search: {} });
    } catch (failure) {
      setProblems(problemsOf(failure));
      throw failure;
    }
  };
  return (
    <FormDialog
      wide
      title="Publish a DAG"
      description="The new version is active at once. Runs under way keep theirs."
      verb="Publish"
      isReady={text.trim() !== "" && text !== document}
      run={publish}
      done="Published"
      cli={() => piped(text, cli("dag", "publish", "-"))}
      curl={() => curl("POST", "/v1/dags", { document: text })}
      onClose={onClose}
      onDone={() => void client.invalidateQueries({ queryKey: ["dags"] })}
    >
      <div className="h-80"><LazyEditor label="DAG" language="yaml" value={text} onChange={setText} problems={problems} /></div>
    </FormDialog>
  );
}
