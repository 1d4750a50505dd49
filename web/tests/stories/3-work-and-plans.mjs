import assert from "node:assert/strict";

export default {
  "a function shows its last failures": async ({ page, go }) => {
    await go("functions");
    await page.getByRole("link", { name: "charge" }).click();
    await page.getByText("the card is declined").first().waitFor();
  },
  "a list is sorted by a column, and the address has the order": async ({ page, go }) => {
    await go("functions");
    const first = page.getByRole("grid", { name: "Functions" }).getByRole("row").nth(1);
    await page.getByRole("button", { name: "Failed", exact: true }).click();
    await page.getByRole("button", { name: "Failed", exact: true }).click();
    await first.getByRole("link", { name: "charge" }).waitFor();
    assert.equal(await page.getByRole("columnheader", { name: "Failed" }).getAttribute("aria-sort"), "descending");
    await page.reload();
    await first.getByRole("link", { name: "charge" }).waitFor();
    assert.match(page.url(), /sort=-failed/);
    await go("instances?q=function:charge&sort=id");
    const row = page.getByRole("grid", { name: "Instances" }).getByRole("row").nth(2);
    await row.getByRole("link", { name: "invoke:charge-2" }).waitFor();
    await page.getByRole("button", { name: "Instance", exact: true }).click();
    await row.getByRole("link", { name: "invoke:charge-11" }).waitFor();
  },
  "workers, pools and queues are on one page": async ({ page, go }) => {
    await go("workers");
    await page.getByRole("cell", { name: "dev", exact: true }).waitFor();
    await page.getByText("Activities ready").waitFor();
  },
  "without dead letters the page says so": async ({ page, go }) => {
    await go("dead-letters");
    await page.getByText("No dead letters").waitFor();
  },
  "a runbook is checked while it is typed": async ({ page, go }) => {
    await go("runbooks/guests?tab=edit");
    const editor = page.getByRole("textbox", { name: "Runbook" });
    await editor.getByText("greet").first().waitFor();
    await page.getByText("This is the active version.").waitFor();
    await editor.fill("name: guests\nphases: 3\n");
    await page.getByText(/expected a list, found a number/).first().waitFor();
    assert.ok(await page.getByRole("button", { name: "Publish" }).isDisabled());
  },
  "a batch is advanced, and each step of each member is shown": async ({ page, go, server }) => {
    const { batches } = await server.send("GET", "batches");
    const batch = batches.find((each) => each.member_counts.active > 3);
    await go(`batches/${batch.id}`);
    await page.getByRole("button", { name: "greet: succeeded" }).first().waitFor();
    await page.getByRole("button", { name: "Advance" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Advance" }).click();
    await page.getByRole("button", { name: "confirm: succeeded" }).first().click();
    await page.getByRole("complementary", { name: /Member Guest/ }).getByRole("region", { name: "Parameters" }).waitFor();
    await page.getByRole("heading", { name: /completed/ }).waitFor();
  },
  "the steps of a batch are added up over its members, and a number leads to them": async ({ page, go, server }) => {
    const { batches } = await server.send("GET", "batches");
    await go(`batches/${batches.find((each) => each.member_counts.active > 3).id}`);
    await page.getByRole("tab", { name: "Steps" }).click();
    await page.getByRole("table", { name: "Steps and states" }).getByRole("button", { name: "greet: 40 members succeeded" }).click();
    await page.getByRole("region", { name: "Members of greet: succeeded" }).getByRole("button", { name: "Guest 7", exact: true }).click();
    await page.getByRole("complementary", { name: "Member Guest 7" }).getByRole("region", { name: "Parameters" }).waitFor();
    await page.reload();
    await page.getByRole("region", { name: "Members of greet: succeeded" }).waitFor();
  },
  "a run is started, drawn, and run again from a task": async ({ page, go }) => {
    await go("dags/greetings");
    await page.getByRole("button", { name: "Start a run" }).click();
    await page.getByLabel("Partition (day)").fill("2026-01-07");
    await page.getByRole("dialog").getByRole("button", { name: "Start" }).click();
    await page.getByRole("heading", { name: /succeeded/ }).waitFor();
    await page.getByRole("group", { name: "Tasks" }).getByRole("button", { name: /^report/ }).click();
    await page.getByRole("complementary", { name: "Task report" }).getByRole("region", { name: "Output" }).waitFor();
    await page.getByRole("tab", { name: "Gantt" }).click();
    await page.getByRole("grid", { name: "Gantt" }).getByText("fetch").waitFor();
    const before = page.url();
    await page.getByRole("button", { name: "Rerun from here" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Rerun" }).click();
    await page.waitForURL((url) => url.href !== before);
    await page.getByRole("link", { name: "earlier run" }).waitFor();
  },
  "a drag over partitions chooses the range of a backfill": async ({ page, go }) => {
    await go("dags/greetings?tab=partitions");
    await page.getByRole("button", { name: "2026-01-05: made" }).hover();
    await page.mouse.down();
    await page.getByRole("button", { name: "2026-01-06: made" }).hover();
    await page.mouse.up();
    assert.equal(await page.getByLabel("Partitions, one or a range").inputValue(), "2026-01-05..2026-01-06");
    await page.getByRole("button", { name: "Backfill" }).click();
    await page.getByRole("dialog").getByText("for the partitions 2026-01-05..2026-01-06").waitFor();
  },
  "a query is answered as a table and as a chart": async ({ page, go }) => {
    await go("sql");
    await page.getByRole("textbox", { name: "Query" }).waitFor();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("grid", { name: "Answer" }).getByText("completed").waitFor();
    await page.getByRole("tab", { name: "Chart" }).click();
    await page.getByText("instances by status").waitFor();
  },
  "the audit log has what the stories changed": async ({ page, go }) => {
    await go("admin?tab=audit");
    await page.getByText("POST /v1/instances").first().waitFor();
    await go("instances/story-pause?tab=audit");
    await page.getByText(/\/pause$/).first().waitFor();
  },
  "the administration has nodes, the store, versions, tenants and settings with their origin": async ({ page, go, server }) => {
    await server.send("POST", "instances?tenant=story-tenant", { orchestration: "greet", id: "of-the-tenant", on_conflict: "use_existing", input: { name: "Ada" } });
    const { node } = await server.send("GET", "system");
    await go("admin");
    await page.getByRole("row", { name: new RegExp(`${node}.*up`) }).getByText("this page").waitFor();
    await page.getByRole("tab", { name: "Nodes" }).focus();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("img", { name: /^data .* free / }).waitFor();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("row", { name: /^greet .*running/ }).waitFor();
    await page.getByRole("tab", { name: "Settings" }).click();
    await page.getByRole("button", { name: "Without defaults" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("server.listen");
    await page.getByRole("row", { name: /server\.listen .*127\.0\.0\.1.*--listen/ }).waitFor();
    await page.getByRole("button", { name: "Without defaults" }).click();
    assert.equal(await page.getByRole("gridcell", { name: "default", exact: true }).count(), 0);
    await page.getByRole("tab", { name: "Tenants" }).click();
    await page.getByRole("link", { name: "story-tenant" }).click();
    await page.getByRole("heading", { name: "Home" }).waitFor();
    assert.match(page.url(), /tenant=story-tenant/);
  },
};
