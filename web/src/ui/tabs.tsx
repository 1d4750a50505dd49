import * as Radix from "@radix-ui/react-tabs";

export type Tab = { id: string; name: string; count?: number; content: React.ReactNode };

export function Tabs({ tabs, value, onChange, label }: { tabs: Tab[]; value: string; onChange: (id: string) => void; label: string }) {
  const current = tabs.some((tab) => tab.id === value) ? value : (tabs[0]?.id ?? "");
  return (
    <Radix.Root value={current} onValueChange={onChange} className="flex h-full min-h-0 flex-1 flex-col">
      <Radix.List aria-label={label} className="flex shrink-0 gap-1 overflow-x-auto border-b border-line px-4">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.id}
            value={tab.id}
            className="-mb-px h-9 border-b-2 border-transparent px-2 text-sm font-medium whitespace-nowrap text-dim hover:text-text data-[state=active]:border-accent data-[state=active]:text-text"
          >
            {tab.name}
            {tab.count !== undefined && <span className="ml-1.5 text-xs text-faint tabular-nums">{tab.count}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.id} value={tab.id} className="min-h-0 flex-1 overflow-auto outline-none">
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
