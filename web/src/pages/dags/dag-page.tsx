export function DagPage() { return null; }
