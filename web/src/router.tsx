import {
  type ErrorComponentProps,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  retainSearchParams,
} from "@tanstack/react-router";
import { setScope } from "./api/scope";
import { basePath } from "./lib/base";
import { Layout } from "./shell/layout";
import { Empty, Failure } from "./ui/states";

/** What may stand in the address of any page. All of it is text that pages interpret. */
export type Search = {
  namespace?: string;
  tenant?: string;
  q?: string;
  tab?: string;
  view?: string;
  at?: number;
  execution?: number;
  name?: string;
  /** The order of a list. */
  sort?: string;
  /** A step of a batch and a state: `PHASE.INDEX.STATE`. */
  step?: string;
};

function text(value: unknown): string | undefined {
  return value === undefined || value === "" ? undefined : String(value);
}

function number(value: unknown): number | undefined {
  const parsed = Number(value);
  return value === undefined || Number.isNaN(parsed) ? undefined : parsed;
}

const root = createRootRoute({
  validateSearch: (search: Record<string, unknown>): Search => ({
    namespace: text(search.namespace),
    tenant: text(search.tenant),
    q: text(search.q),
    tab: text(search.tab),
    view: text(search.view),
    at: number(search.at),
    execution: number(search.execution),
    name: text(search.name),
    sort: text(search.sort),
    step: text(search.step),
  }),
  search: { middlewares: [retainSearchParams(["namespace", "tenant"])] },
  beforeLoad: ({ search }) => setScope({ namespace: search.namespace ?? "default", tenant: search.tenant ?? "default" }),
  component: Layout,
  notFoundComponent: () => <Empty icon="search" title="There is no such page">Check the address, or press Ctrl-K to search.</Empty>,
  errorComponent: ({ error, reset }: ErrorComponentProps) => <Failure error={error} retry={reset} />,
});

const routes = [
  createRoute({ getParentRoute: () => root, path: "/", component: lazyRouteComponent(() => import("./pages/home/home-page"), "HomePage") }),
  createRoute({ getParentRoute: () => root, path: "/instances", component: lazyRouteComponent(() => import("./pages/instances/instances-page"), "InstancesPage") }),
  createRoute({ getParentRoute: () => root, path: "/instances/$id", component: lazyRouteComponent(() => import("./pages/instance/instance-page"), "InstancePage") }),
  createRoute({ getParentRoute: () => root, path: "/start", component: lazyRouteComponent(() => import("./pages/start/start-page"), "StartPage") }),
  createRoute({ getParentRoute: () => root, path: "/schedules", component: lazyRouteComponent(() => import("./pages/schedules/schedules-page"), "SchedulesPage") }),
  createRoute({ getParentRoute: () => root, path: "/schedules/$id", component: lazyRouteComponent(() => import("./pages/schedules/schedule-page"), "SchedulePage") }),
  createRoute({ getParentRoute: () => root, path: "/timers", component: lazyRouteComponent(() => import("./pages/timers/timers-page"), "TimersPage") }),
  createRoute({ getParentRoute: () => root, path: "/actions", component: lazyRouteComponent(() => import("./pages/actions/actions-page"), "ActionsPage") }),
  createRoute({ getParentRoute: () => root, path: "/webhooks", component: lazyRouteComponent(() => import("./pages/webhooks/webhooks-page"), "WebhooksPage") }),
  createRoute({ getParentRoute: () => root, path: "/webhooks/$name", component: lazyRouteComponent(() => import("./pages/webhooks/webhook-page"), "WebhookPage") }),
  createRoute({ getParentRoute: () => root, path: "/functions", component: lazyRouteComponent(() => import("./pages/functions/functions-page"), "FunctionsPage") }),
  createRoute({ getParentRoute: () => root, path: "/functions/$name", component: lazyRouteComponent(() => import("./pages/functions/function-page"), "FunctionPage") }),
  createRoute({ getParentRoute: () => root, path: "/workers", component: lazyRouteComponent(() => import("./pages/workers/workers-page"), "WorkersPage") }),
  createRoute({ getParentRoute: () => root, path: "/dead-letters", component: lazyRouteComponent(() => import("./pages/dead-letters/dead-letters-page"), "DeadLettersPage") }),
  createRoute({ getParentRoute: () => root, path: "/runbooks", component: lazyRouteComponent(() => import("./pages/runbooks/runbooks-page"), "RunbooksPage") }),
  createRoute({ getParentRoute: () => root, path: "/runbooks/$name", component: lazyRouteComponent(() => import("./pages/runbooks/runbook-page"), "RunbookPage") }),
  createRoute({ getParentRoute: () => root, path: "/batches/$id", component: lazyRouteComponent(() => import("./pages/batch/batch-page"), "BatchPage") }),
  createRoute({ getParentRoute: () => root, path: "/dags", component: lazyRouteComponent(() => import("./pages/dags/dags-page"), "DagsPage") }),
  createRoute({ getParentRoute: () => root, path: "/dags/$name", component: lazyRouteComponent(() => import("./pages/dags/dag-page"), "DagPage") }),
  createRoute({ getParentRoute: () => root, path: "/runs/$id", component: lazyRouteComponent(() => import("./pages/run/run-page"), "RunPage") }),
  createRoute({ getParentRoute: () => root, path: "/sql", component: lazyRouteComponent(() => import("./pages/sql/sql-page"), "SqlPage") }),
  createRoute({ getParentRoute: () => root, path: "/admin", component: lazyRouteComponent(() => import("./pages/admin/admin-page"), "AdminPage") }),
];

export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: basePath,
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
