export function RunbookPage() { return null; }
