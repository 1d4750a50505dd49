import type { IconName } from "../ui/icon";

export type Place = { to: string; name: string; icon: IconName; key?: string };

/** The pages of the sidebar, in groups. `g` and then the key goes there. */
export const PLACES: { group?: string; places: Place[] }[] = [
  {
    places: [
      { to: "/", name: "Home", icon: "home", key: "h" },
      { to: "/instances", name: "Instances", icon: "list", key: "i" },
      { to: "/start", name: "Start", icon: "play", key: "n" },
    ],
  },
  {
    group: "Time and events",
    places: [
      { to: "/schedules", name: "Schedules", icon: "clock", key: "s" },
      { to: "/timers", name: "Timers", icon: "timer", key: "t" },
      { to: "/actions", name: "Actions", icon: "bolt", key: "a" },
      { to: "/webhooks", name: "Webhooks", icon: "hook", key: "w" },
    ],
  },
  {
    group: "Plans",
    places: [
      { to: "/runbooks", name: "Runbooks", icon: "book", key: "b" },
      { to: "/dags", name: "DAG runs", icon: "graph", key: "d" },
    ],
  },
  {
    group: "Work",
    places: [
      { to: "/functions", name: "Functions", icon: "code", key: "f" },
      { to: "/workers", name: "Workers", icon: "worker", key: "p" },
      { to: "/dead-letters", name: "Dead letters", icon: "dead", key: "l" },
    ],
  },
  {
    group: "System",
    places: [
      { to: "/sql", name: "SQL", icon: "table", key: "q" },
      { to: "/admin", name: "Admin", icon: "gear", key: "m" },
    ],
  },
];

export const ALL_PLACES = PLACES.flatMap((each) => each.places);
