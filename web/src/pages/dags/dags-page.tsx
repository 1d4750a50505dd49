export function DagsPage() { return null; }
