// The pages of a furnished server, and going to them as a person does.
export const PAGES = ["", "instances", "instances?view=counts", "instances/order-1001", "instances/invoke:charge-1?tab=events", "instances/invoke:charge-4?tab=data", "start", "schedules", "timers", "actions", "webhooks", "webhooks/orders", "functions", "functions/charge", "workers", "dead-letters", "runbooks", "runbooks/guests?tab=edit", "batches/1", "batches/1?tab=steps", "dags", "dags/greetings?tab=graph", "sql", "admin", "admin?tab=store", "admin?tab=versions", "admin?tab=tenants", "admin?tab=settings", "admin?tab=audit"];

/** These, and the pages of things whose ids the server chose. */
export async function pagesOf(server) {
  const { runs } = await server.send("GET", "runs");
  const { recurring_actions: schedules } = await server.send("GET", "recurring");
  const ofSchedules = ["morning-report", "monthly-invoice"].map((name) => `schedules/${schedules.find((row) => row.name === name).id}`);
  return [...PAGES, ...ofSchedules, `runs/${runs[0].id}`, `runs/${runs[0].id}?tab=gantt`, "dags/greetings?tab=partitions", "runbooks/guests?tab=source"];
}

/** Waits until nothing of the page is still loading. */
export async function settle(page) {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForFunction(() => document.querySelector('[aria-label="Loading"]') === null);
}

/** Goes to a page as a link of the page does, without loading everything again. */
export async function follow(page, path) {
  const [before, isThere] = await page.evaluate((url) => {
    const isThere = window.location.pathname + window.location.search === url;
    const before = document.querySelector("main")?.dataset.path;
    if (!isThere) window.history.pushState({}, "", url);
    return [before, isThere];
  }, `/${path}`);
  // The address of what is drawn, which follows that of the browser.
  if (!isThere) await page.waitForFunction((path) => document.querySelector("main")?.dataset.path !== path, before);
}
