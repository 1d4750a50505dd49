import { ApiError, ConnectionError } from "../api/errors";
import { Button } from "./button";
import { Icon, type IconName } from "./icon";

export function Empty({ icon = "list", title, children }: { icon?: IconName; title: string; children?: React.ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-2 px-6 py-16 text-center">
      <Icon name={icon} size={22} className="text-faint" />
      <div className="text-base font-medium">{title}</div>
      {children && <div className="max-w-md text-dim">{children}</div>}
    </div>
  );
}

export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-3 p-5">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="h-3.5 animate-shimmer rounded bg-mute-bg" style={{ width: `${88 - ((index * 17) % 50)}%` }} />
      ))}
    </div>
  );
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const isAway = error instanceof ConnectionError;
  const code = error instanceof ApiError ? error.code : undefined;
  return (
    <div role="alert" className="m-5 flex items-start gap-3 rounded-lg border border-line bg-panel p-4">
      <Icon name="warning" className={isAway ? "mt-0.5 text-warn" : "mt-0.5 text-bad"} />
      <div className="min-w-0 flex-1">
        <div className="font-medium">{isAway ? "The server does not answer" : messageOf(error)}</div>
        <div className="mt-0.5 text-dim">
          {isAway ? "The page reads everything again once it does." : code && <span className="font-mono text-xs">{code}</span>}
        </div>
      </div>
      {retry && <Button onClick={retry} icon="refresh">Try again</Button>}
    </div>
  );
}

export function messageOf(error: unknown): string {
  if (error instanceof ApiError && error.fields.length > 0) {
    return error.fields.map((each) => (each.field ? `${each.field}: ${each.detail}` : each.detail)).join("\n");
  }
  return error instanceof Error ? error.message : String(error);
}

type QueryState = { isPending: boolean; error: unknown; refetch: () => unknown; data: unknown };

/** What a page shows instead of its content while that is not there. */
export function Unready({ query }: { query: QueryState }) {
  if (query.error && query.data === undefined) return <Failure error={query.error} retry={() => void query.refetch()} />;
  return <Loading />;
}
