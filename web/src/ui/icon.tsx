/** Line icons of 16 × 16, one path each. */
const PATHS = {
  home: "M2.5 7 8 2.500 13.500 7v6.500h-4v-4h-3v4h-4z",
  list: "M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.01M2.500 8h.01M2.500 12h.01",
  play: "M5 3.200v9.600L12.500 8z",
  clock: "M8 4.500V8l2.500 1.500M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z",
  bolt: "M9 1.500 3.500 9H8l-1 5.500L12.500 7H8z",
  hook: "M6 6.500a3 3 0 1 1 3.800 2.900L11.500 13M10 13.500a2 2 0 1 0 3 0M6.300 8 4.500 11M4 14a2 2 0 1 1 0-3.900",
  code: "M5.500 4.500 2 8l3.500 3.500M10.500 4.500 14 8l-3.500 3.500",
  worker: "M3 3h10v4H3zM3 9h10v4H3zM5.500 5h.01M5.500 11h.01",
  dead: "M2.500 4.500h11v8h-11zM2.500 5l5.500 4 5.500-4",
  book: "M3 2.500h8.500a1.500 1.500 0 0 1 1.500 1.500v9.500H4.500A1.500 1.500 0 0 1 3 12zM3 12a1.500 1.500 0 0 1 1.500-1.500H13",
  graph: "M4 5.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM12 9.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM4 13.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM5.500 4.500 10.500 7M5.500 11.500l5-2.500",
  table: "M2.500 3h11v10h-11zM2.500 6.500h11M6.500 6.500V13",
  gear: "M8 10.200a2.200 2.200 0 1 0 0-4.400 2.200 2.200 0 0 0 0 4.400zM8 1.800v2M8 12.200v2M1.800 8h2M12.200 8h2M3.600 3.600 5 5M11 11l1.400 1.400M12.400 3.600 11 5M5 11l-1.400 1.400",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.700 10.700 14 14",
  down: "M4 6l4 4 4-4",
  up: "M4 10l4-4 4 4",
  right: "M6 4l4 4-4 4",
  server: "M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.01M5 11h.01M8 5h3.500M8 11h3.500",
  timer: "M8 14A5 5 0 1 0 8 4a5 5 0 0 0 0 10zM8 6.500V9l1.800 1M6.500 1.500h3M8 1.500V4",
  close: "M4 4l8 8M12 4l-8 8",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  check: "M3 8.500 6.500 12 13 4.500",
  copy: "M5.500 5.500h8v8h-8zM3.500 10.500h-1v-8h8v1",
  pause: "M5.500 3.500v9M10.500 3.500v9",
  stop: "M4 4h8v8H4z",
  refresh: "M13 8a5 5 0 1 1-1.500-3.500M13 2v3h-3",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.500V3M8 13v1.500M1.500 8H3M13 8h1.500M3.500 3.500l1 1M11.500 11.500l1 1M12.500 3.500l-1 1M4.500 11.500l-1 1",
  warning: "M8 2 14.500 13.500h-13zM8 6.500v3M8 11.500h.01",
  plus: "M8 3v10M3 8h10",
  filter: "M2 3.500h12L9.500 8.500V13l-3-1.500v-3z",
  trash: "M3 4.500h10M6.500 4V2.500h3V4M4.500 4.500l.5 9h6l.5-9",
  send: "M2 8 14 2.500 10.500 13.500 8 9z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16, className }: { name: IconName; size?: number; className?: string }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === "more" || name === "list" ? 1.7 : 1.35}
      strokeLinecap="round"
      strokeLinejoin="round"
      className={className}
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
