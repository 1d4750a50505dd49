import assert from "node:assert/strict";

export default {
  "a schedule is made with a preview of its next times": async ({ page, go, server }) => {
    await go("schedules");
    await page.getByRole("button", { name: "New schedule" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("story-schedule");
    await dialog.getByLabel("Expression").fill("30 2 * * *");
    await dialog.getByLabel("Time zone").fill("Europe/Berlin");
    await dialog.getByText("At 02:30 (Europe/Berlin)").waitFor();
    assert.equal(await dialog.getByRole("region", { name: "Preview" }).getByRole("listitem").count(), 10);
    await dialog.getByLabel("Function", { exact: true }).fill("echo");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: /story-schedule/ }).waitFor();
    const { recurring_actions: rows } = await server.send("GET", "recurring");
    assert.ok(rows.some((row) => row.name === "story-schedule" && row.timezone === "Europe/Berlin"));
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
  },
};
