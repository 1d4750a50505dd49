export function FunctionPage() { return null; }
