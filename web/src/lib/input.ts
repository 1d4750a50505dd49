/** Text that should be JSON: the value, or what is wrong with it. */
export function parseJson(text: string): { value: unknown; problem?: undefined } | { problem: string; value?: undefined } {
  if (text.trim() === "") return { value: null };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
