export function FunctionsPage() { return null; }
