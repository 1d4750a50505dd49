export function WorkersPage() { return null; }
