/** Text of the server or of a user in which `backticks` mark code. Drawn as text, never as markup. */
export function Prose({ text }: { text: string }) {
  const parts = text.split(/`([^`]+)`/);
  return parts.map((part, index) => (index % 2 === 0 ? part : <code key={index} className="rounded bg-mute-bg px-1 font-mono text-xs">{part}</code>));
}
