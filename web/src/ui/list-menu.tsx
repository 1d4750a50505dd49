import { copyText } from "./copy";
import { cli, curl } from "../lib/command";
import { exportRows } from "../lib/export";
import { toast } from "../shell/toasts";
import { Button } from "./button";
import { Menu, type MenuItem } from "./menu";

type Props = {
  /** Name of the file of an export. */
  name: string;
  /** What an export has: read when it is asked for. */
  rows: () => object[];
  /** Words of the command that lists the same, and the path of the request. */
  command: string[];
  path: string;
  /** The body of the request, where it is a query. */
  body?: unknown;
  more?: MenuItem[];
};

/** What every list can do: be copied as a command, and be exported. */
export function ListMenu({ name, rows, command, path, body, more = [] }: Props) {
  const copy = async (text: string) => {
    const isDone = await copyText(text);
    toast(isDone ? "Copied" : "The browser does not let the page copy", !isDone);
  };
  const items: MenuItem[] = [
    { name: "Copy as CLI", onSelect: () => void copy(cli(...command)) },
    { name: "Copy as curl", onSelect: () => void copy(curl(body === undefined ? "GET" : "POST", path, body)) },
    { name: "Export loaded rows as CSV", onSelect: () => exportRows(name, rows()) },
    ...more,
  ];
  return <Menu label="More" trigger={<Button icon="more" aria-label="More" />} items={items} />;
}
