import { useEffect } from "react";

/** The frame of a page: a title line that stays, and content that scrolls. */
export function Page({ title, heading, actions, children }: {
  title: string;
  heading?: React.ReactNode;
  actions?: React.ReactNode;
  children: React.ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Segno`;
  }, [title]);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <header className="flex min-h-12 shrink-0 flex-wrap items-center gap-x-3 gap-y-2 border-b border-line px-5 py-2 max-md:px-3">
        <h1 className="min-w-0 flex-1 truncate text-base font-semibold max-md:basis-full">{heading ?? title}</h1>
        {actions && <div data-actions className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      <div className="min-h-0 flex-1 overflow-auto">{children}</div>
    </div>
  );
}

export function Panel({ title, aside, children, className = "" }: { title?: React.ReactNode; aside?: React.ReactNode; children: React.ReactNode; className?: string }) {
  return (
    <section className={`rounded-lg border border-line bg-panel ${className}`}>
      {title && (
        <div className="flex min-h-10 items-center justify-between gap-3 border-b border-line px-4 py-1.5">
          <h2 className="text-sm font-semibold">{title}</h2>
          {aside}
        </div>
      )}
      {children}
    </section>
  );
}

/** Names and values, one below the other. */
export function Facts({ facts }: { facts: [string, React.ReactNode][] }) {
  return (
    <dl className="grid grid-cols-[max-content_minmax(0,1fr)] gap-x-5 gap-y-1.5">
      {facts.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false).map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-dim">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A part of a panel or dialog under its name. */
export function Section({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <section>
      <h3 className="mb-1.5 text-xs font-medium text-faint">{name}</h3>
      {children}
    </section>
  );
}

/** What may be wider than the window, and then scrolls sideways, also by keyboard. */
export function Wide({ label, className = "", children }: { label: string; className?: string; children: React.ReactNode }) {
  return <div role="region" aria-label={label} tabIndex={0} className={`relative overflow-x-auto ${className}`}>{children}</div>;
}
