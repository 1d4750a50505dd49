export function RunbooksPage() { return null; }
