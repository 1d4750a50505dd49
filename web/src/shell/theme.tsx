import { useEffect, useState } from "react";
import { Button } from "../ui/button";
import { Menu } from "../ui/menu";

type Theme = "light" | "dark" | "system";
const KEY = "segno.theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

function show(theme: Theme) {
  document.documentElement.classList.toggle("dark", theme === "dark" || (theme === "system" && dark.matches));
}

export function ThemeMenu() {
  const [theme, setTheme] = useState(stored);
  useEffect(() => {
    show(theme);
    const onSystem = () => show(theme);
    dark.addEventListener("change", onSystem);
    return () => dark.removeEventListener("change", onSystem);
  }, [theme]);
  const choose = (next: Theme) => {
    setTheme(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // The choice then lasts as long as the page.
    }
  };
  const names: [Theme, string][] = [["light", "Light"], ["dark", "Dark"], ["system", "As the system"]];
  return (
    <Menu
      label="Theme"
      trigger={<Button look="ghost" icon="sun" aria-label="Theme" title="Theme" />}
      items={names.map(([value, name]) => ({ name, checked: value === theme, onSelect: () => choose(value) }))}
    />
  );
}
