// Forms of the portal in a real Chromium: the field that has the focus after a refusal, and its texts.

import type { Locator, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import {
  accessibilityViolations,
  chromiumPath,
  clippedChoices,
  openPortalView,
  overflowing,
  scrollsSideways,
} from "../../../support/processes/chromium.ts";
import { runningSandbox } from "../../../support/processes/sandbox.ts";

/** Submits and waits until the field has the focus, is marked, and is described by the failure. */
async function refused(form: Locator, button: string, field: Locator): Promise<string> {
  await form.getByRole("button", { name: button, exact: true }).click();
  const failure = form.getByRole("alert").locator("p");
  await failure.waitFor();
  await expect.poll(() => field.evaluate((each) => each.matches(":focus"))).toBe(true);
  expect(await field.getAttribute("aria-invalid")).toBe("true");
  const ids = (await field.getAttribute("aria-describedby"))?.split(" ") ?? [];
  const id = await form.getByRole("alert").getAttribute("id");
  expect(ids).toContain(id);
  return (await failure.textContent()) ?? "";
}

async function fits(page: Page): Promise<void> {
  expect(await scrollsSideways(page)).toBe(false);
  expect(await overflowing(page, "dialog, dialog *:not(pre, code)")).toEqual([]);
  expect(await clippedChoices(page)).toEqual([]);
}

describe.skipIf(!chromiumPath)("forms of the portal in Chromium", () => {
  it("have the focus in the refused field, and fit a phone 360 pixels wide", async () => {
    const sandbox = await runningSandbox("127.0.0.1:0");
    const wrong = new URL(sandbox.gatewayUrl);
    wrong.searchParams.set("api-key", "sw_wrong");
    const { page, complaints } = await openPortalView(wrong.href, "feed");
    await page.setViewportSize({ width: 360, height: 740 });
    const key = page.getByLabel("API key", { exact: true });
    expect(await refused(page.locator("form"), "Sign in", key)).toContain("Invalid API key");
    await key.fill(new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "");
    await page.getByRole("button", { name: "Sign in" }).click();

    await page.getByRole("button", { name: "Add a destination" }).click();
    const destination = page.getByRole("dialog", { name: "Add a destination" });
    await fits(page);
    const address = destination.getByLabel("Address", { exact: true });
    await address.fill("nonsense");
    expect(await refused(destination, "Add", address)).toContain('invalid value "nonsense"');
    expect(await accessibilityViolations(page)).toEqual([]);
    await fits(page);
    await destination.getByRole("button", { name: "Cancel" }).click();

    await page.goto(`${wrong.origin}/portal/#/keys`);
    await page.getByRole("button", { name: "Register a public key" }).click();
    const registration = page.getByRole("dialog", { name: "Register a public key" });
    await fits(page);
    const output = registration.getByLabel("Output of the command");
    await output.fill("not JSON");
    await refused(registration, "Register", output);
    await registration.getByRole("button", { name: "Cancel" }).click();
    expect(complaints.found).toEqual([]);
  });
});
