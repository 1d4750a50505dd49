import assert from "node:assert/strict";
import { furnish } from "../furnish.mjs";
import { Server } from "../harness.mjs";
import { PAGES, follow, settle } from "../pages.mjs";

export const hasOwnServers = true;

/** Names of buttons that change something. */
const CHANGES = /^(Pause|Resume|Cancel|Delete|Edit|Run now|Publish…?|Advance|Start a run|Backfill|Revoke|Restart|Send|Replay|Resubmit|Discard|Call it|Start it|Try it|Approve|New .*|Start|Retry now|Remove them…|Keep them…)$/;

async function keyFor(server, role) {
  return (await server.send("POST", "keys", { name: `${role} of a story`, role, grants: [{ namespace: "default", tenant: "default" }] })).secret;
}

async function signedIn(browser, server, role) {
  const page = await browser.open(server.page);
  await page.getByLabel("API key").fill(await keyFor(server, role));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: role }).waitFor();
  return page;
}

/** A furnished store, on a server with keys. */
async function furnished() {
  const open = await Server.start();
  await furnish(open.api, { members: 5 });
  return Server.start({ keys: true, data: await open.leave() });
}

export default {
  "a viewer can change nothing on any page, and the server refuses it anyway": async ({ browser }) => {
    const server = await furnished();
    try {
      const page = await signedIn(browser, server, "viewer");
      for (const path of PAGES) {
        await follow(page, path);
        await settle(page);
        const names = await page.locator("main button:visible").allInnerTexts();
        assert.deepEqual(names.filter((name) => CHANGES.test(name.trim())), [], `/${path}`);
      }
      const statuses = await page.evaluate(() =>
        Promise.all([["POST", "instances/order-1001/pause"], ["DELETE", "instances/order-1001"], ["POST", "instances"], ["PUT", "functions/charge"], ["DELETE", "runbooks/guests"], ["POST", "batches/1/requests"], ["POST", "keys"], ["GET", "audit"]].map(([method, path]) =>
          fetch(`v1/${path}`, { method, headers: { "content-type": "application/json" }, body: method === "GET" || method === "DELETE" ? undefined : "{}" }).then((answer) => answer.status)),
        ),
      );
      assert.deepEqual([...new Set(statuses)], [403]);
      await browser.close(page);
    } finally {
      await server.stop();
    }
  },
  "an operator has every button that changes work, and none of the administrator's": async ({ browser }) => {
    const server = await furnished();
    try {
      const page = await signedIn(browser, server, "operator");
      for (const [path, name] of [["instances/order-1001", "Pause"], ["schedules", "New schedule"], ["functions/charge", "Edit"], ["webhooks/orders", "Edit"], ["batches/1", "Advance"], ["dags/greetings", "Start a run"]]) {
        await follow(page, path);
        await settle(page);
        await page.locator("main").getByRole("button", { name, exact: true }).waitFor();
      }
      await follow(page, "admin");
      await settle(page);
      assert.equal(await page.getByRole("tab", { name: "Keys" }).count(), 0);
      assert.equal(await page.evaluate(() => fetch("v1/keys").then((answer) => answer.status)), 403);
      await browser.close(page);
    } finally {
      await server.stop();
    }
  },
};
