import { Link } from "@tanstack/react-router";
import { useMe } from "../api/me";
import { Button } from "../ui/button";
import { Icon } from "../ui/icon";
import { Menu } from "../ui/menu";
import { PLACES } from "./navigation";
import { ScopeSwitch } from "./scope-switch";
import { signOut } from "./sign-in";
import { ThemeMenu } from "./theme";

export function Sidebar({ onSearch }: { onSearch: () => void }) {
  const me = useMe().data;
  return (
    <nav aria-label="Pages" className="flex w-52 shrink-0 flex-col border-r border-line bg-bg max-md:w-12">
      <div className="flex h-12 items-center gap-2 px-3">
        <img src="./icon.svg" width="22" height="22" alt="" />
        <div className="min-w-0 flex-1 max-md:hidden"><ScopeSwitch /></div>
      </div>
      <button
        type="button"
        onClick={onSearch}
        className="mx-2 mb-1.5 flex h-7.5 items-center gap-2 rounded-md border border-line bg-panel px-2 text-faint hover:border-line-strong"
      >
        <Icon name="search" size={14} />
        <span className="flex-1 text-left max-md:sr-only">Search</span>
        <kbd className="rounded border border-line px-1 font-sans text-[10.5px] max-md:hidden">Ctrl K</kbd>
      </button>
      <div className="min-h-0 flex-1 overflow-y-auto px-2 pb-3">
        {PLACES.map(({ group, places }) => (
          <div key={group ?? ""} className="mt-2">
            {group && <div className="px-2 pt-1.5 pb-1 text-xs font-medium text-faint max-md:hidden">{group}</div>}
            {places.map((place) => (
              <Link
                key={place.to}
                to={place.to}
                search={{}}
                activeOptions={{ exact: place.to === "/", includeSearch: false }}
                activeProps={{ className: "bg-hover text-text font-medium", "aria-current": "page" }}
                inactiveProps={{ className: "text-dim" }}
                title={`${place.name} (g ${place.key ?? ""})`}
                className="flex h-7 items-center gap-2.5 rounded-md px-2 hover:bg-hover hover:text-text"
              >
                <Icon name={place.icon} size={15} />
                <span className="max-md:sr-only">{place.name}</span>
              </Link>
            ))}
          </div>
        ))}
      </div>
      <div className="flex items-center gap-1 border-t border-line px-2 py-1.5 max-md:flex-col">
        <ThemeMenu />
        <a href="docs" target="_blank" rel="noreferrer" className="rounded-md px-2 py-1 text-xs text-dim hover:bg-hover max-md:hidden">API</a>
        <span className="flex-1" />
        {me?.session && (
          <Menu
            label="Account"
            trigger={<Button look="ghost">{me.role}</Button>}
            items={[{ name: "Sign out", onSelect: () => void signOut() }]}
          />
        )}
      </div>
    </nav>
  );
}
