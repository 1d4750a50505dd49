export function ActionsPage() { return null; }
