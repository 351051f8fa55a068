// Public keys in the portal: a real Chromium, the signing command, and a stock ShredStream proxy's login.

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { publicKeys } from "../../../../src/tools/commands/public-keys.ts";
import {
  accessibilityViolations,
  chromiumPath,
  openPortalView,
  scrollsSideways,
} from "../../../support/processes/chromium.ts";
import { CommandRun } from "../../../support/processes/command-run.ts";
import { runningSandbox } from "../../../support/processes/sandbox.ts";
import { writeKeyFile } from "../../../support/shredstream/key-file.ts";
import { stockClient } from "../../../support/shredstream/stock-client.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

async function openPortal() {
  const sandbox = await runningSandbox("127.0.0.1:0", { shredstream: "127.0.0.1:0" });
  const { page, complaints } = await openPortalView(sandbox.gatewayUrl, "keys");
  await page.getByText("No public key registered.").waitFor();
  return { sandbox, page, complaints };
}

/** Runs a command line that the page shows, with another key file. */
async function signed(command: string, keyFile: string): Promise<string> {
  const words = command.replace("id.json", keyFile).split(" ");
  expect(words.slice(0, 2)).toEqual(["shredway", "public-keys"]);
  const run = new CommandRun(publicKeys, words.slice(2));
  expect(await run.code).toBe(0);
  return run.stdout;
}

describe.skipIf(!chromiumPath)("the portal in Chromium", () => {
  it("registers a ShredStream proxy's public key, lists it, and removes it", async () => {
    const { sandbox, page, complaints } = await openPortal();
    const keyFile = join(temporaryFolder(), "proxy.json");
    const pair = writeKeyFile(keyFile, 7);
    const proxy = stockClient(sandbox.service.subscribers?.address ?? "");
    await expect(proxy.login(pair)).rejects.toThrow(/is not registered/);

    await page.getByRole("button", { name: "Register a public key" }).click();
    const dialog = page.getByRole("dialog", { name: "Register a public key" });
    const output = dialog.getByLabel("Output of the command");
    await output.fill("not JSON");
    await dialog.getByRole("button", { name: "Register" }).click();
    await dialog.getByRole("alert").getByText("The text is not a registration").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    const command = (await dialog.locator("pre").textContent()) ?? "";
    expect(command).toContain("--purpose shredstream");
    const registration = await signed(command, keyFile);
    await output.fill(registration.replace('"purpose":"shredstream"', '"purpose":"tpu"'));
    await dialog.getByRole("button", { name: "Register" }).click();
    await dialog
      .getByRole("alert")
      .getByText(/signature/)
      .waitFor();
    await output.fill(registration);
    await dialog.getByRole("button", { name: "Register" }).click();
    const card = page.locator("li.card", { hasText: pair.address });
    await card.getByText("shredstream").waitFor();
    await card.getByText("active").waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);

    // The account has no tier yet, but its key is known.
    const { access } = await proxy.login(pair);
    await expect(proxy.heartbeat(access, "127.0.0.1", 9001)).rejects.toThrow(/has no tier/);

    await card.getByRole("button", { name: "Remove" }).click();
    const question = page.getByRole("dialog", { name: "Remove" });
    await question.getByRole("button", { name: "Remove" }).click();
    await page.getByText("No public key registered.").waitFor();
    await expect
      .poll(() => proxy.login(pair).then(String, ({ message }: Error) => message))
      .toMatch(/is not registered/);
    expect(complaints.found).toEqual([]);
  });
});
