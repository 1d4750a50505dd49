import assert from "node:assert/strict";

export default {
  "home says what is wrong, and one click leads to the list": async ({ page }) => {
    await page.getByRole("link", { name: /failed in the last hour/ }).click();
    await page.getByRole("grid", { name: "Instances" }).waitFor();
    assert.match(decodeURIComponent(page.url()), /status:failed/);
    await page.getByText("the card is declined").first().waitFor();
  },
  "a filter is in the address and survives a reload": async ({ page, go }) => {
    await go("instances");
    await page.getByRole("button", { name: /^failed/ }).click();
    await page.getByRole("link", { name: "invoke:charge-12" }).waitFor();
    await page.reload();
    await page.getByRole("link", { name: "invoke:charge-12" }).waitFor();
    assert.equal(await page.getByRole("button", { name: /^failed/ }).getAttribute("aria-pressed"), "true");
    await page.getByLabel("Filter", { exact: true }).fill("status:nonsense");
    await page.getByText("There is no status “nonsense”").waitFor();
  },
  "a started instance is on the list within a second": async ({ page, go, server }) => {
    await go("instances?q=story-live");
    await page.getByText("No instance matches this filter").waitFor();
    await page.waitForFunction(() => document.documentElement.dataset.live === "on");
    const began = Date.now();
    await server.send("POST", "instances", { orchestration: "greet", id: "story-live-1", input: { name: "Ada", wait: true } });
    await page.getByRole("link", { name: "story-live-1" }).waitFor();
    assert.ok(Date.now() - began < 1_500, `it took ${Date.now() - began} ms`);
    await server.send("POST", "instances/story-live-1/raise", { name: "wave" });
    await page.getByRole("row", { name: /completed story-live-1/ }).waitFor({ timeout: 1_500 });
  },
  "no row moves under the pointer: new ones are counted": async ({ page, go, server }) => {
    await go("instances?q=orchestration:greet");
    await page.getByRole("row", { name: /order-1001/ }).hover();
    await server.send("POST", "instances", { orchestration: "greet", id: "story-pointer", input: { name: "Ada" } });
    await page.getByRole("button", { name: /new instances?: show/ }).click();
    await page.getByRole("link", { name: "story-pointer" }).waitFor();
  },
  "several instances are paused and resumed with a reason": async ({ page, go, server }) => {
    for (const id of ["story-bulk-1", "story-bulk-2"]) await server.send("POST", "instances", { orchestration: "greet", id, input: { name: "Ada", wait: true } });
    await go("instances?q=story-bulk");
    await page.getByLabel("Select story-bulk-1").check();
    await page.getByLabel("Select story-bulk-2").check();
    await page.getByRole("toolbar").getByRole("button", { name: "Pause" }).click();
    await page.getByText("2 instances would be paused.").waitFor();
    await page.getByLabel("Reason").fill("a story");
    await page.getByRole("button", { name: "Pause them" }).click();
    await page.getByText("2 instances changed.").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    assert.equal((await server.send("GET", "instances/story-bulk-2")).pause_reason, "a story");
    await page.getByRole("row", { name: /paused story-bulk-2/ }).waitFor();
  },
  "a bulk change of all that match counts before it changes": async ({ page, go }) => {
    await go("instances?q=function:resize");
    await page.getByRole("link", { name: "invoke:resize-1" }).waitFor();
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Cancel all that match…" }).click();
    await page.getByRole("button", { name: "Count what it hits" }).click();
    await page.getByText("3 instances").waitFor();
    await page.getByRole("button", { name: "Cancel them" }).click();
    await page.getByText("3 instances changed.").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    await go("instances?q=function:charge%20failure:bank-timeout%20ended:<1h");
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Restart all that match…" }).click();
    await page.getByRole("button", { name: "Count what it hits" }).click();
    await page.getByText("3 instances").waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
  },
  "instances are counted by state, function and failure, and a count narrows the filter": async ({ page, go }) => {
    await go("instances?q=function:charge");
    await page.getByRole("button", { name: "failed 6" }).waitFor();
    await page.getByRole("button", { name: "Counts" }).click();
    await page.getByRole("region", { name: "Counts" }).getByRole("button", { name: /card-declined/ }).click();
    await page.getByRole("link", { name: "invoke:charge-4" }).waitFor();
    await page.getByRole("link", { name: "invoke:charge-1", exact: true }).waitFor({ state: "hidden" });
    assert.match(decodeURIComponent(page.url()), /failure:card-declined/);
  },
  "an instance is restarted with another input, for a reason that the audit log keeps": async ({ page, go, server }) => {
    await go("instances/invoke:echo-2");
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Restart with another input…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Input, JSON").fill('{"n": "changed"}');
    await dialog.getByLabel("Reason").fill("the number was wrong");
    await dialog.getByRole("button", { name: "Restart it" }).click();
    await page.getByText("Restarted", { exact: true }).waitFor();
    await page.getByRole("tab", { name: "Input and result" }).click();
    await page.getByRole("region", { name: "Result" }).getByText("changed").waitFor();
    const { entries } = await server.send("GET", "audit?resource=invoke:echo-2");
    assert.equal(entries[0].reason, "the number was wrong");
  },
  "an instance shows its timeline, waits for a signal, and gets it from the page": async ({ page, go }) => {
    await go("instances/order-1001");
    await page.getByRole("grid", { name: "Timeline" }).getByText("hello", { exact: true }).waitFor();
    await page.getByText("signal wave", { exact: true }).click();
    await page.getByRole("complementary", { name: "About signal wave" }).waitFor();
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("menuitem", { name: "Raise a signal…" }).click();
    assert.equal(await page.getByRole("combobox", { name: "Name" }).inputValue(), "wave");
    await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
    await page.getByRole("heading", { name: /completed/ }).waitFor();
  },
  "time travel shows the state as of an event, in the address": async ({ page, go }) => {
    await go("instances/order-1001?at=2");
    await page.getByText(/2 of \d+: ActivityScheduled/).waitFor();
    await page.getByRole("note").getByText("In progress then: hello").waitFor();
    assert.equal(await page.getByText("signal wave").count(), 0);
    await page.getByRole("button", { name: "Back to now" }).click();
    await page.getByText("signal wave", { exact: true }).waitFor();
  },
  "events are filtered, and failed ones found": async ({ page, go }) => {
    await go("instances/invoke:charge-1?tab=events");
    await page.getByRole("button", { name: "Failed only" }).click();
    await page.getByRole("listitem").filter({ hasText: "ActivityAttemptFailed" }).first().click();
    await page.getByRole("region", { name: /Event \d+/ }).getByText("bank-timeout").waitFor();
  },
  "what differs between two failed attempts is shown": async ({ page, go }) => {
    await go("instances/invoke:charge-1?tab=data");
    const difference = page.getByLabel("Attempt 2 compared with the one before");
    await difference.getByText("details.gateway").waitFor();
    await difference.getByText("gateway-1").waitFor();
    await difference.getByText("gateway-2").waitFor();
    assert.equal(await difference.getByText("seconds").count(), 0);
  },
  "an instance is paused with a reason, and resumed": async ({ page, go, server }) => {
    await server.send("POST", "instances", { orchestration: "greet", id: "story-pause", input: { name: "Ada", wait: true } });
    await go("instances/story-pause");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByLabel("Reason").fill("until Monday");
    await page.getByRole("button", { name: "Pause it" }).click();
    await page.getByRole("note").getByText(/until Monday/).waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Resume it" }).click();
    await page.getByRole("heading", { name: /running/ }).waitFor();
  },
  "a function is called from the page": async ({ page, go }) => {
    await go("start");
    await page.getByLabel("Name").fill("echo");
    await page.getByLabel("Input, JSON").fill('{"from": "the page"}');
    await page.getByRole("button", { name: "Call it" }).click();
    await page.getByRole("heading", { name: /completed/ }).waitFor();
    await page.getByRole("tab", { name: "Input and result" }).click();
    await page.getByRole("region", { name: "Result" }).getByText("the page").waitFor();
  },
};
