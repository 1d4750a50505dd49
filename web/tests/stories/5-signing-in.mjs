import assert from "node:assert/strict";
import { Server } from "../harness.mjs";
import { listen } from "../proxy.mjs";

const grant = (namespace, tenant) => [{ namespace, tenant }];

async function keyFor(server, role, grants) {
  return (await server.send("POST", "keys", { name: `${role} of a story`, role, grants })).secret;
}

async function signIn(page, key) {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** A server with keys for one story, and pages on it. */
async function withKeys(browser, story, options = {}) {
  const server = await Server.start({ keys: true, ...options });
  try {
    await story(server, (path = "", { at = server.page, ...rest } = {}) => browser.open(at + path, rest));
  } finally {
    await server.stop();
  }
}

export const hasOwnServers = true;

export default {
  "a key signs in, is kept nowhere, and signs out": async ({ browser }) => {
    await withKeys(browser, async (server, open) => {
      const page = await open("instances");
      await signIn(page, "segno_0123456789abcdef_wrong");
      await page.getByText(/unknown, revoked or expired/).waitFor();
      await signIn(page, server.key);
      await page.getByRole("heading", { name: "Instances" }).waitFor();
      assert.equal(new URL(page.url()).pathname, "/instances");
      const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
      assert.ok(!kept.includes(server.key) && !kept.includes("segno_session"), kept);
      const [cookie] = await page.context().cookies();
      assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite], ["segno_session", true, "Strict"]);
      await page.reload();
      await page.getByRole("heading", { name: "Instances" }).waitFor();
      await page.getByRole("button", { name: "admin" }).click();
      await page.getByRole("menuitem", { name: "Sign out" }).click();
      await page.getByLabel("API key").waitFor();
      assert.deepEqual((await server.send("GET", "sessions")).sessions, []);
      await browser.close(page);
    });
  },
  "an ended session sees the sign-in page, and its stream ends": async ({ browser }) => {
    await withKeys(browser, async (server, open) => {
      const page = await open("admin?tab=sessions");
      await signIn(page, server.key);
      await page.getByRole("button", { name: "End", exact: true }).click();
      await page.getByRole("button", { name: "End it" }).click();
      await page.getByLabel("API key").waitFor();
      await browser.close(page);
    });
  },
  "each role sees what it may do, in its own tenant": async ({ browser }) => {
    await withKeys(browser, async (server, open) => {
      const scope = "?namespace=shop&tenant=eu";
      await server.send("PUT", `functions/pack${scope}`, { executor: "remote", description: "Packs a parcel" }, { "if-none-match": "*" });
      await server.send("POST", `invocations${scope}`, { function: "pack", key: "one", input: { order: 1 } });
      for (const [role, may] of [["viewer", false], ["operator", true]]) {
        const page = await open("instances/invoke:one");
        await signIn(page, await keyFor(server, role, grant("shop", "eu")));
        await page.getByRole("heading", { name: /invoke:one/ }).waitFor();
        assert.match(page.url(), /tenant=eu/, role);
        const pause = page.getByRole("button", { name: "Pause" });
        // The sign that what the page may do is known.
        await page.getByRole("button", { name: role }).waitFor();
        if (!may) assert.equal(await pause.count(), 0, role);
        if (may) {
          await pause.click();
          await page.getByLabel("Reason").fill("a story");
          await page.getByRole("button", { name: "Pause it" }).click();
          await page.getByRole("note").getByText(/a story/).waitFor();
        }
        await page.getByRole("link", { name: "Admin" }).click();
        await page.getByRole("tab", { name: "Versions" }).waitFor();
        assert.deepEqual(await page.getByRole("tab").allInnerTexts(), ["Versions", "Tenants", "Sessions"], role);
        assert.equal(await page.evaluate(() => fetch("v1/instances?namespace=lab&tenant=us").then((answer) => answer.status)), 403);
        await browser.close(page);
      }
      const worker = await open();
      await signIn(worker, await keyFor(server, "worker", grant("shop", "eu")));
      await worker.getByText("This key is for workers").waitFor();
      await browser.close(worker);
    });
  },
  "two tenants in two browsers do not see each other": async ({ browser }) => {
    await withKeys(browser, async (server, open) => {
      const seen = {};
      for (const tenant of ["eu", "us"]) {
        const scope = `?namespace=shop&tenant=${tenant}`;
        await server.send("PUT", `functions/pack${scope}`, { executor: "remote" }, { "if-none-match": "*" });
        await server.send("POST", `invocations${scope}`, { function: "pack", key: `of-${tenant}`, input: 1 });
        seen[tenant] = await open("instances");
        await signIn(seen[tenant], await keyFor(server, "operator", grant("shop", tenant)));
        await seen[tenant].getByRole("link", { name: `invoke:of-${tenant}` }).waitFor();
      }
      // Rows do not move under a pointer.
      await seen.us.mouse.move(0, 0);
      await server.send("POST", "invocations?namespace=shop&tenant=us", { function: "pack", key: "later", input: 1 });
      await seen.us.getByRole("link", { name: "invoke:later" }).waitFor();
      assert.equal(await seen.eu.getByText(/invoke:(later|of-us)/).count(), 0);
      for (const page of Object.values(seen)) await browser.close(page);
    });
  },
  "behind a proxy every link has its path, and signing in works": async ({ browser }) => {
    const proxy = await listen("/tools/segno/");
    await withKeys(
      browser,
      async (server, open) => {
        proxy.forwardTo(server.origin);
        await server.send("PUT", "functions/charge", { executor: "remote" }, { "if-none-match": "*" });
        const page = await open("instances", { at: proxy.url });
        await signIn(page, server.key);
        await page.getByRole("link", { name: "Functions" }).click();
        await page.getByRole("link", { name: "charge" }).waitFor();
        assert.equal(new URL(page.url()).pathname, "/tools/segno/functions");
        const [cookie] = await page.context().cookies();
        assert.equal(cookie.path, "/tools/segno/");
        await page.reload();
        await page.getByRole("link", { name: "charge" }).waitFor();
        await browser.close(page);
      },
      { set: { "server.public_url": proxy.url } },
    );
    proxy.close();
  },
};
