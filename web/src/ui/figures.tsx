/** Numbers with a name below each, in a row. */
export function Figures({ figures }: { figures: [name: string, value: string | undefined, tone?: string][] }) {
  return (
    <dl className="grid grid-cols-2 gap-3 sm:grid-cols-[repeat(auto-fit,minmax(130px,1fr))]">
      {figures.map(([name, value, tone = ""]) => (
        <div key={name} className="flex flex-col-reverse rounded-lg border border-line bg-panel px-4 py-3">
          <dt className="text-xs text-faint">{name}</dt>
          <dd className={`text-lg font-semibold tabular-nums ${tone}`}>{value ?? "–"}</dd>
        </div>
      ))}
    </dl>
  );
}
