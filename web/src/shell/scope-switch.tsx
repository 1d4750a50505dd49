import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMe } from "../api/me";
import { scopeSearch, useScope } from "../api/scope";
import { useStored } from "../lib/storage";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { TextField } from "../ui/field";
import { Icon } from "../ui/icon";
import { Menu, type MenuItem } from "../ui/menu";

const REMEMBERED = 8;

/** Which namespace and tenant the page is about. */
export function ScopeSwitch() {
  const scope = useScope();
  const me = useMe().data;
  const navigate = useNavigate();
  const [recent, setRecent] = useStored<string[]>("scopes", []);
  const [isOpen, setIsOpen] = useState(false);
  const current = `${scope.namespace}/${scope.tenant}`;
  const granted = (me?.grants ?? [])
    .filter((grant) => grant.namespace !== "*" && grant.tenant !== "*")
    .map((grant) => `${grant.namespace}/${grant.tenant}`);
  const known = [...new Set([current, ...granted, ...recent, "default/default"])];

  const choose = (name: string) => {
    const [namespace = "default", tenant = "default"] = name.split("/");
    setRecent([name, ...recent.filter((each) => each !== name)].slice(0, REMEMBERED));
    void navigate({
      to: "/",
      search: {
        namespace: namespace === "default" ? undefined : namespace,
        tenant: tenant === "default" ? undefined : tenant,
      },
    });
  };

  const items: MenuItem[] = known.map((name) => ({ name, checked: name === current, onSelect: () => choose(name) }));
  return (
    <>
      <Menu
        label="Namespace and tenant"
        trigger={
          <button type="button" title="Namespace and tenant" className="flex h-7 w-full min-w-0 items-center gap-1 rounded-md px-1.5 text-left font-semibold hover:bg-hover">
            <span className="truncate">{scope.namespace === scope.tenant ? scope.tenant : current}</span>
            <Icon name="down" size={12} className="shrink-0 text-faint" />
          </button>
        }
        items={[...items, "line", { name: "All tenants", onSelect: () => void navigate({ to: "/admin", search: { ...scopeSearch(scope), tab: "tenants" } }) }, { name: "Another one…", onSelect: () => setIsOpen(true) }]}
      />
      {isOpen && <OtherScope onClose={() => setIsOpen(false)} onChoose={choose} />}
    </>
  );
}

function OtherScope({ onClose, onChoose }: { onClose: () => void; onChoose: (name: string) => void }) {
  const [namespace, setNamespace] = useState("default");
  const [tenant, setTenant] = useState("");
  const submit = () => {
    onChoose(`${namespace.trim() || "default"}/${tenant.trim() || "default"}`);
    onClose();
  };
  return (
    <Dialog open onClose={onClose} title="Namespace and tenant" footer={<Button look="primary" onClick={submit}>Switch</Button>}>
      <form
        className="grid grid-cols-2 gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <TextField name="Namespace" value={namespace} onChange={setNamespace} />
        <TextField name="Tenant" value={tenant} onChange={setTenant} placeholder="default" autoFocus />
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
