// Sessions of the portal in a real Chromium: tabs share one cookie, and a live feed can be refused.

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { feedsPerAccountMax } from "../../../../src/platform/portal/live-feed.ts";
import {
  accessibilityViolations,
  buildPortal,
  chromiumPath,
  openPortalView,
} from "../../../support/processes/chromium.ts";
import { PortalHarness } from "../harness.ts";

async function openHarness(): Promise<PortalHarness> {
  buildPortal();
  return PortalHarness.open();
}

function isLive(page: Page): Promise<void> {
  return page
    .getByRole("status")
    .filter({ hasText: /^Live$/ })
    .waitFor();
}

async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key", { exact: true }).fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await isLive(page);
}

/** Makes the page's WebSockets available, so that a test can break one. */
const recordSockets = `{
  const sockets = [];
  const Stock = WebSocket;
  window.breakSockets = () => sockets.forEach((socket) => socket.close());
  window.WebSocket = class extends Stock {
    constructor(...given) { super(...given); sockets.push(this); }
  };
}`;

describe.skipIf(!chromiumPath)("a session of the portal in Chromium", () => {
  it("of another account, opened in another tab, replaces what a reconnecting tab shows", async () => {
    const harness = await openHarness();
    const [ann, bob] = [await harness.key("ann"), await harness.key("bob", ["read"])];
    const url = `${harness.origin}/?api-key=${ann.text}`;
    const { page, complaints } = await openPortalView(url, "overview");
    await isLive(page);
    await page.addInitScript(recordSockets);
    await page.reload();
    await isLive(page);
    const other = await page.context().newPage();
    await other.goto(`${harness.origin}/portal/`);
    await isLive(other);

    // The first tab is offline while the second one changes the account.
    await page.route("**/*", (route) => route.abort());
    await page.evaluate("breakSockets()");
    await page.getByText("Reconnecting").waitFor();
    await other.getByRole("button", { name: "Sign out" }).click();
    await signIn(other, bob.text);
    await page.unroute("**/*");
    await isLive(page);

    expect(await page.locator(".view-head").textContent()).toContain("bob");
    await page.getByText("This key cannot show the tier").waitFor();
    expect(complaints.found.filter((each) => !each.includes("ERR_FAILED"))).toEqual([]);
  });

  it("shows why the service refuses its live feed, and continues when one is free", async () => {
    const harness = await openHarness();
    const { text } = await harness.key("ann");
    const cookie = await harness.cookie({ text });
    const feeds = Array.from({ length: feedsPerAccountMax }, () => harness.feed(cookie));
    for (const feed of feeds) await feed.has("service");
    const { page } = await openPortalView(`${harness.origin}/?api-key=${text}`, "feed");
    const alert = page.getByRole("alert").filter({ hasText: "too many live feeds; at most 8" });
    await alert.waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    feeds[0]?.close();
    await isLive(page);
    await alert.waitFor({ state: "detached" });
  });

  it("keeps a new key on the page until it is stored, and then names the new key", async () => {
    const harness = await openHarness();
    const { text, key } = await harness.key("ann");
    const { page } = await openPortalView(`${harness.origin}/?api-key=${text}`, "keys");
    await page.getByRole("button", { name: "Rotate" }).click();
    const dialog = page.getByRole("dialog", { name: "Rotate the key" });
    await dialog.getByRole("button", { name: "Rotate" }).click();
    const created = (await dialog.locator("pre").textContent()) ?? "";
    const focused = () => page.evaluate<string>("document.activeElement.textContent");
    await expect.poll(focused).toContain("This is the new key");
    // Browsers close most dialogs at the second Escape, whatever the page wants.
    for (let i = 0; i < 3; i++) await page.keyboard.press("Escape");
    expect(await dialog.locator("pre").textContent()).toBe(created);
    await dialog.getByRole("button", { name: "I have stored it" }).click();
    await dialog.waitFor({ state: "detached" });
    const title = () => page.getByRole("button", { name: "Sign out" }).getAttribute("title");
    await expect.poll(title).toContain(created.slice(0, key.hint.length));
  });

  it("saves a month as CSV, and explains a refused export", async () => {
    const harness = await openHarness();
    const { text } = await harness.key("ann");
    const { page } = await openPortalView(`${harness.origin}/?api-key=${text}`, "overview");
    const button = page.getByRole("button", { name: "Export CSV" });
    const month = page.getByLabel("Month");
    await month.fill("2026-10");
    const saved = page.waitForEvent("download");
    await button.click();
    expect((await saved).suggestedFilename()).toBe("shredway-2026-10.csv");
    expect(readFileSync(await (await saved).path(), "utf8")).toMatch(/^time,record,signature,/);
    await month.fill("");
    await button.click();
    await page.getByRole("alert").filter({ hasText: "expected a month or day" }).waitFor();
  });

  it("looks up a signature again that it did not know", async () => {
    const harness = await openHarness();
    const { text } = await harness.key("ann");
    const { page } = await openPortalView(`${harness.origin}/?api-key=${text}`, "transactions");
    const button = page.getByRole("button", { name: "Look up" });
    await page.getByLabel("Signature of a transaction").fill("5".repeat(87));
    await button.click();
    await page.getByText("This account has no submission").waitFor();
    const again = page.waitForRequest((each) => each.url().endsWith("/portal/api/call"));
    await button.click();
    await again;
    await page.getByText("This account has no submission").waitFor();
  });
});
