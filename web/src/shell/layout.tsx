import { useQueryClient } from "@tanstack/react-query";
import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ApiError } from "../api/errors";
import { follow } from "../api/live";
import { type Me, mayEnter, useMe } from "../api/me";
import { scopeSearch, useScope } from "../api/scope";
import type { Search } from "../router";
import { Button } from "../ui/button";
import { Empty, Failure, Loading } from "../ui/states";
import { ChangeProvider } from "./change";
import { ConnectionBanner } from "./connection";
import { ALL_PLACES } from "./navigation";
import { Palette } from "./palette";
import { Sidebar } from "./sidebar";
import { SignIn, signOut } from "./sign-in";
import { Toasts } from "./toasts";

export function Layout() {
  const me = useMe();
  if (me.error instanceof ApiError && me.error.status === 401) return <SignIn />;
  if (me.data === undefined) {
    return <div className="h-full">{me.error ? <Failure error={me.error} retry={() => void me.refetch()} /> : <Loading />}</div>;
  }
  if (!me.data.may.includes("read")) return <NotAReader me={me.data} />;
  return <AtHome me={me.data} />;
}

/** Goes where the key is for, if the address names no place and the default is none of its own. */
function AtHome({ me }: { me: Me }) {
  const navigate = useNavigate();
  const scope = useScope();
  const isElsewhere = !mayEnter(me, scope) && scope.namespace === "default" && scope.tenant === "default";
  const { namespace, tenant } = me;
  useEffect(() => {
    if (isElsewhere) void navigate({ to: ".", search: (search: Search) => ({ ...search, ...scopeSearch({ namespace, tenant }) }), replace: true });
  }, [isElsewhere, namespace, tenant, navigate]);
  return isElsewhere ? <Loading /> : <SignedIn />;
}

/** A worker's key opens nothing here. */
function NotAReader({ me }: { me: Me }) {
  return (
    <main className="grid h-full place-items-center p-6">
      <Empty icon="gear" title={`This key is for ${me.role}s`}>
        It takes and answers work, and reads nothing. Sign in with a viewer's, operator's or administrator's key.
        <div className="mt-3"><Button onClick={() => void signOut()}>Sign out</Button></div>
      </Empty>
    </main>
  );
}

function SignedIn() {
  const client = useQueryClient();
  const { namespace, tenant } = useScope();
  const [isSearching, setIsSearching] = useState(false);
  useEffect(() => follow(client), [client, namespace, tenant]);
  useShortcuts(() => setIsSearching(true));
  // The address of what is drawn, which is that of the browser once the page's code has been loaded.
  const path = useRouterState({ select: (state) => state.resolvedLocation?.href });
  return (
    <ChangeProvider>
      <div className="flex h-full flex-col">
        <ConnectionBanner />
        <div className="flex min-h-0 flex-1">
          <Sidebar onSearch={() => setIsSearching(true)} />
          <main data-path={path} className="min-w-0 flex-1 bg-panel">
            <Outlet />
          </main>
        </div>
      </div>
      {isSearching && <Palette onClose={() => setIsSearching(false)} />}
      <Toasts />
    </ChangeProvider>
  );
}

const SEQUENCE_MS = 1_200;

/** Ctrl-K searches; `g` and a letter goes to a page; `/` goes to the page's filter. */
function useShortcuts(onSearch: () => void) {
  const navigate = useNavigate();
  useEffect(() => {
    let begun = 0;
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        onSearch();
        return;
      }
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input,textarea,select,[contenteditable=true],[role=dialog]")) return;
      if (event.key === "/") {
        const filter = document.querySelector<HTMLInputElement>("[data-filter]");
        if (filter) {
          event.preventDefault();
          filter.focus();
        }
      } else if (event.key === "g") {
        begun = event.timeStamp;
      } else if (event.timeStamp - begun < SEQUENCE_MS) {
        begun = 0;
        const place = ALL_PLACES.find((each) => each.key === event.key);
        if (place) void navigate({ to: place.to, search: {} });
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [navigate, onSearch]);
}
