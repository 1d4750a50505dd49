import assert from "node:assert/strict";

export default {
  "a schedule is made with a preview of its next times": async ({ page, go, server }) => {
    await go("schedules");
    await page.getByRole("img", { name: /^Last outcomes: .*(completed|running)/ }).first().waitFor();
    await page.getByRole("button", { name: "New schedule" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("story-schedule");
    await dialog.getByLabel("Expression").fill("30 2 * * *");
    await dialog.getByLabel("Time zone").fill("Europe/Berlin");
    await dialog.getByText("At 02:30 (Europe/Berlin)").waitFor();
    assert.equal(await dialog.getByRole("region", { name: "Preview" }).getByRole("listitem").count(), 10);
    await dialog.getByRole("img", { name: /^(29|30) runs in the next 30 days, at most 1 on one$/ }).waitFor();
    await dialog.getByLabel("Function", { exact: true }).fill("echo");
    await dialog.getByLabel("Reason").fill("the sales team wants it");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: /story-schedule/ }).waitFor();
    const { recurring_actions: rows } = await server.send("GET", "recurring");
    assert.ok(rows.some((row) => row.name === "story-schedule" && row.timezone === "Europe/Berlin"));
    const { entries } = await server.send("GET", "audit");
    assert.equal(entries.find((entry) => entry.operation === "POST /v1/recurring").reason, "the sales team wants it");
    await page.getByRole("button", { name: /02:30/ }).first().click();
    await page.getByText(/It runs then:/).waitFor();
  },
  "an edit changes what was edited, and nothing that the form does not show": async ({ page, go, server }) => {
    const { recurring_id: id } = await server.send("POST", "recurring", { name: "story-digest", cron_expr: "0 9 1 1 *", provider: "echo", action_type: "send_digest", payload: { to: "team" }, metadata: { team: "eu" }, catch_up_limit: 7, missed: "all" });
    await go(`schedules/${id}`);
    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    assert.ok(await dialog.getByRole("button", { name: "Save" }).isDisabled());
    await dialog.getByLabel("Description").fill("for the team");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("for the team").waitFor();
    await page.getByRole("button", { name: "Edit" }).click();
    await dialog.getByLabel("Input, JSON").fill('{"to": "all"}');
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("region", { name: "Input" }).getByText('"all"').waitFor();
    const { action_template: call, catch_up_limit: limit } = await server.send("GET", `recurring/${id}`);
    assert.deepEqual([call.provider, call.action_type, call.payload, call.metadata, limit], ["echo", "send_digest", { to: "all" }, { team: "eu" }, 7]);
  },
  "a schedule is paused from its list": async ({ page, go }) => {
    await go("schedules");
    await page.getByRole("button", { name: "More about night-clean-up" }).click();
    await page.getByRole("menuitem", { name: "Pause…" }).click();
    await page.getByLabel("Reason").fill("the disk is replaced");
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: /paused night-clean-up/ }).waitFor();
    await page.getByRole("button", { name: "More about night-clean-up" }).click();
    await page.getByRole("menuitem", { name: "Resume…" }).click();
    await page.getByRole("button", { name: "Resume it" }).click();
    await page.getByRole("row", { name: /active night-clean-up/ }).waitFor();
  },
  "a schedule is paused with a note, resumed, run now, and explained": async ({ page, go, server }) => {
    const { recurring_actions: rows } = await server.send("GET", "recurring");
    await go(`schedules/${rows.find((row) => row.name === "morning-report").id}`);
    await page.getByText("At 09:00, Monday through Friday (Europe/Berlin)").first().waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByLabel("Reason").fill("holidays");
    await page.getByRole("button", { name: "Pause it" }).click();
    await page.getByText(/Paused .*: holidays/).waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Resume it" }).click();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByRole("button", { name: "Run it" }).click();
    await page.getByRole("button", { name: "Explain" }).first().click();
    await page.getByText(/It (runs|does not run) then:/).waitFor();
  },
  "what wakes up by itself is in one place, by kind, and a next attempt is called at once": async ({ page, go, server }) => {
    await server.send("POST", "instances", { orchestration: "greet", id: "story-later", on_conflict: "use_existing", input: { name: "Ada" }, start_at: new Date(Date.now() + 3_600_000).toISOString() });
    await go("timers");
    const parcel = page.getByRole("row", { name: /Next attempt invoke:ship-1/ });
    const later = page.getByRole("row", { name: /Delayed start story-later/ });
    await parcel.waitFor();
    await page.getByRole("button", { name: /^Delayed start/ }).click();
    await later.waitFor();
    assert.equal(await parcel.count(), 0);
    await page.getByRole("button", { name: /^Delayed start/ }).click();
    await parcel.getByRole("button", { name: "Retry now" }).click();
    await page.getByLabel("Reason").fill("the carrier is back");
    await page.keyboard.press("Enter");
    await page.getByText("The next attempt was called").waitFor();
    await parcel.waitFor({ state: "hidden" });
    await page.keyboard.press("/");
    await page.keyboard.type("story-later");
    await page.getByRole("grid", { name: "Timers" }).focus();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /story-later/ }).waitFor();
    const { entries } = await server.send("GET", "audit?action=retry");
    assert.equal(entries[0].reason, "the carrier is back");
  },
  "an action shows what it was called with": async ({ page, go }) => {
    await go("actions");
    await page.getByText("hook orders").first().click();
    await page.getByRole("dialog").getByRole("region", { name: "Input" }).getByText("cups").waitFor();
  },
  "a delivery appears by itself, is inspected, and replayed": async ({ page, go, server }) => {
    await go("webhooks/orders");
    await page.getByRole("grid", { name: "Deliveries" }).waitFor();
    await server.send("POST", "hooks/default/orders", { order: "story" }, { "content-type": "application/json" });
    await page.getByRole("row", { name: /routed/ }).nth(4).waitFor();
    await page.getByRole("row", { name: /routed/ }).first().click();
    await page.getByRole("dialog").getByText("story").waitFor();
    await page.getByRole("button", { name: "Replay" }).click();
    await page.getByRole("button", { name: "Replay it" }).click();
    await page.getByText("Replayed").waitFor();
    await page.getByRole("tab", { name: "Test it" }).click();
    await page.getByRole("button", { name: "Would the route take it?" }).click();
    await page.getByText("The route would take this request now.").waitFor();
  },
};
