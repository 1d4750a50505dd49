const TAIL = 14;
const SHORT = 30;

/** An id on one line: if there is no room, its middle is left out, since ids differ at their ends. */
export function Id({ id }: { id: string }) {
  if (id.length <= SHORT) return <span title={id} className="truncate">{id}</span>;
  return (
    <span title={id} className="flex min-w-0">
      <span className="truncate">{id.slice(0, -TAIL)}</span>
      <span className="shrink-0 whitespace-pre">{id.slice(-TAIL)}</span>
    </span>
  );
}
