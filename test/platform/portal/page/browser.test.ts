// The portal in a real Chromium against a complete running service: the sandbox in its own
// process.

import { execFileSync } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Keypair, LAMPORTS_PER_SOL, PublicKey, SystemProgram, Transaction } from "@solana/web3.js";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { viewNames } from "../../../../src/platform/portal/page/router.ts";
import { freePortPair } from "../../../support/network/free-ports.ts";
import {
  accessibilityViolations,
  Complaints,
  chromiumPath,
  openChromium,
  overflowing,
  scrollsSideways,
  smallTargets,
} from "../../../support/processes/chromium.ts";
import { Shredway } from "../../../support/processes/shredway.ts";
import { stockConnection } from "../../../support/quic/stock-connection.ts";

const build = fileURLToPath(
  new URL("../../../../src/platform/portal/page/build.mjs", import.meta.url),
);
/** Time limit of waits. */
const waitMs = 60_000;

describe.skipIf(!chromiumPath)("the portal in Chromium", () => {
  const data = mkdtempSync(join(tmpdir(), "shredway-"));
  let http = "";
  let rpc = "";
  let key = "";
  let service: Shredway;
  let browser: Browser;
  let context: BrowserContext;
  let complaints: Complaints;
  const contexts: BrowserContext[] = [];

  async function start(): Promise<void> {
    const places = [
      "--http",
      http,
      "--rpc",
      rpc,
      "--udp",
      "127.0.0.1:0",
      "--streams",
      "127.0.0.1:0",
      "--quic",
      "127.0.0.1:0",
      "--data",
      data,
    ];
    service = Shredway.run("start", ...places);
    await service.printed(/^ready/m);
  }

  beforeAll(async () => {
    execFileSync(process.execPath, [build]);
    http = `127.0.0.1:${await freePortPair()}`;
    rpc = `127.0.0.1:${await freePortPair()}`;
    const [opened] = await Promise.all([openChromium(), start()]);
    browser = opened;
    key = readFileSync(join(data, "sandbox.key"), "utf8").trim();
    context = await newContext({ viewport: { width: 1280, height: 860 } });
    complaints = watch(context);
    await context.grantPermissions(["clipboard-read", "clipboard-write"], {
      origin: `http://${http}`,
    });
  });

  afterAll(async () => {
    await browser?.close();
    await service?.kill();
    rmSync(data, { recursive: true, force: true });
  });

  afterEach(async () => {
    const found = complaints.found.splice(0);
    await Promise.all(context.pages().map((page) => page.close()));
    await Promise.all(contexts.splice(0).map((each) => each.close()));
    if (found.length > 0) throw new Error(`the page reported errors: ${found.join("; ")}`);
  });

  type Choices = Parameters<Browser["newContext"]>[0];

  async function newContext(choices: Choices): Promise<BrowserContext> {
    const created = await browser.newContext(choices);
    created.setDefaultTimeout(waitMs);
    return created;
  }

  function watch(created: BrowserContext): Complaints {
    return new Complaints(created, `http://${http}`);
  }

  /** A new context with the session of the first one, closed after the test. */
  async function signedInContext(choices: Choices): Promise<BrowserContext> {
    const created = await newContext({ ...choices, storageState: await context.storageState() });
    contexts.push(created);
    return created;
  }

  async function openView(view: string, created = context): Promise<Page> {
    const page = await created.newPage();
    await page.goto(`http://${http}/portal/#/${view}`);
    await page
      .getByRole("status")
      .filter({ hasText: /^Live$/ })
      .waitFor();
    return page;
  }

  async function go(page: Page, view: string): Promise<void> {
    await page.evaluate(`location.hash = "#/${view}"`);
    await page.locator("h1", { hasText: new RegExp(view, "i") }).waitFor();
  }

  async function signIn(page: Page, text: string): Promise<void> {
    await page.getByLabel("API key", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  async function ask(text: string, method: string, params: unknown[] = []): Promise<unknown> {
    const answer = await fetch(`http://${http}/relay`, {
      method: "POST",
      headers: { "api-key": text },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { result }: { result?: unknown } = JSON.parse(await answer.text());
    return result;
  }

  it("explains the refusal of an invalid key and accepts a valid one", async () => {
    const page = await context.newPage();
    await page.goto(`http://${http}/portal/`);
    await page.getByLabel("API key", { exact: true }).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await signIn(page, "  ");
    await page.getByRole("alert").filter({ hasText: "Paste an API key" }).waitFor();
    await signIn(page, `sw_${"1".repeat(43)}`);
    await page.getByRole("alert").filter({ hasText: "Invalid API key" }).waitFor();
    await signIn(page, key);
    await page.locator("h1", { hasText: "Overview" }).waitFor();
    await expect.poll(() => page.title()).toBe("Overview · Shredway");
    expect(await page.content()).not.toContain(key);
    const storage = await page.evaluate<string>(
      "JSON.stringify({ ...localStorage, ...sessionStorage })",
    );
    expect(storage).not.toContain("sw_");
    await page.reload();
    await page.locator("h1", { hasText: "Overview" }).waitFor();
  });

  async function register(text: string, entry: object): Promise<void> {
    const body = JSON.stringify([entry]);
    await fetch(`http://${http}/shred-pay`, { method: "POST", headers: { "api-key": text }, body });
  }

  /** Pays a tip whose transaction mentions the keys, and registers it. */
  async function payTip(lamports: number, ...mentioned: readonly PublicKey[]) {
    const connection = stockConnection(`http://${rpc}`, "confirmed");
    const payer = Keypair.generate();
    const airdrop = await connection.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
    const lifetime = await connection.getLatestBlockhash();
    await connection.confirmTransaction({ signature: airdrop, ...lifetime });
    const accounts = await ask(key, "getShredTipAccounts");
    const toPubkey = new PublicKey(Array.isArray(accounts) ? String(accounts[0]) : "");
    const tip = new Transaction({ feePayer: payer.publicKey, ...lifetime });
    const transfer = SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey, lamports });
    for (const pubkey of mentioned) {
      transfer.keys.push({ pubkey, isSigner: false, isWritable: false });
    }
    tip.add(transfer).sign(payer);
    const bytes = tip.serialize();
    const signature = await connection.sendRawTransaction(bytes);
    const entry = { transaction: bytes.toString("base64"), slot: await connection.getSlot() };
    await register(key, entry);
    return { signature, entry };
  }

  it("shows the tier while tips are registered, and how to register them", async () => {
    const page = await openView("overview");
    await page.getByText("0 of 0.2 SOL for tier-1, 0.2 SOL missing").waitFor();
    const { signature } = await payTip(310_000_000);
    await page.getByText("0.31 of 0.5 SOL for tier-2, 0.19 SOL missing").waitFor();
    await page.getByRole("meter", { name: "Registered tips of 24 hours" }).waitFor();
    await page.locator("tr", { hasText: "upgraded" }).getByText("none → tier-1").waitFor();
    const row = page.locator("tr", { has: page.locator(`code[title="${signature}"]`) });
    await row.getByText("counted").waitFor();
    await expect.poll(() => row.locator("[title='310,000,000 lamports']").count()).toBe(1);
    await page.getByText(`http://${http}/relay?api-key=<your key>`).waitFor();
    await page.getByText(/^UDP from .*127\.0\.0\.1/).waitFor();
    await page.getByText("10,000 calls per second").waitFor();
    await page.getByRole("button", { name: "Copy command to register a tip" }).click();
    await expect
      .poll(() => page.evaluate<string>("navigator.clipboard.readText()"))
      .toContain(`curl 'http://${http}/shred-pay`);
  });

  it("says how to name the account in a tip, and that a payer claimed one", async () => {
    const page = await openView("overview");
    const { tipProof } = Object(await ask(key, "getTier"));
    await page.getByText("Add the memo or the reference key to the transaction before").waitFor();
    for (const [name, value] of [
      ["Memo", tipProof.memo],
      ["Reference key", tipProof.referenceKey],
      ["Account", tipProof.account],
    ]) {
      await page.locator(".facts > div", { hasText: value }).getByText(name).first().waitFor();
      await page.getByRole("button", { name: `Copy ${name.toLowerCase()}` }).click();
      await expect.poll(() => page.evaluate<string>("navigator.clipboard.readText()")).toBe(value);
    }
    const created = Shredway.run("keys", "create", "--account", "payer", "--data", data, "--json");
    const other = JSON.parse((await created.end()).stdout).key;
    await expect.poll(() => ask(other, "getTier")).toHaveProperty("tipProof");
    const { referenceKey } = Object(await ask(other, "getTier")).tipProof;
    const { signature, entry } = await payTip(10_000, new PublicKey(referenceKey));
    const row = page.locator("tr", { has: page.locator(`code[title="${signature}"]`) });
    await row.getByText("counted").waitFor();
    await register(other, entry);
    await row.getByText("dropped").waitFor();
    await page
      .getByRole("table", { name: "Tier history" })
      .getByText("tip claimed by its payer for another account")
      .first()
      .waitFor();
  });

  /** Answers challenges like a customer's receiver. */
  async function provingSocket(): Promise<Socket> {
    const socket = createSocket("udp4");
    socket.on("message", (packet, { port, address }) => {
      if (packet.subarray(0, 8).toString() === "SWPROOF1") socket.send(packet, port, address);
    });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return socket;
  }

  it("adds a destination, shows its verification and sending, and removes it", async () => {
    const page = await openView("feed");
    // At least four slots, each with its column.
    await page.getByRole("slider", { name: "Coverage, slot by slot" }).waitFor();
    await page.getByText(/ of ([4-9]|\d{2,}) slots complete, /).waitFor();
    const socket = await provingSocket();
    const address = `127.0.0.1:${socket.address().port}`;
    await page.getByRole("button", { name: "Add a destination" }).click();
    const dialog = page.getByRole("dialog", { name: "Add a destination" });
    await dialog.getByText("shredway listen --port 9001 --prove").waitFor();
    await dialog.getByLabel("Address").fill("127.0.0.1:80");
    await dialog.getByText("shredway listen --port 80 --prove").waitFor();
    await dialog.getByText("Without the program shredway").click();
    await dialog.getByText('s.bind(("", 80))').waitFor();
    await dialog.getByLabel("Region").selectOption("frankfurt");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await dialog.getByRole("alert").filter({ hasText: "reserved" }).waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await dialog.getByLabel("Address").fill(address);
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    const card = page.locator("li.card", { hasText: address });
    await card.getByText("active").waitFor();
    await card.getByText("by datagram").waitFor();
    await card.getByRole("button", { name: "Switch on recovered shreds" }).click();
    await card.getByRole("button", { name: "Switch off recovered shreds" }).waitFor();
    // The count of sent shreds grows.
    await card.locator("div", { hasText: /^Sent[1-9]/ }).waitFor();
    await card.getByRole("button", { name: "Enter token" }).click();
    await page.getByLabel("Token").fill("not a token");
    await page.getByRole("button", { name: "Verify" }).click();
    await page.getByRole("alert").filter({ hasText: "32 hex digits" }).waitFor();
    await page.keyboard.press("Escape");
    await card.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await card.waitFor({ state: "detached" });
    socket.close();
  });

  it("shows coverage and latency as charts and as numbers", async () => {
    const page = await openView("feed");
    await page.getByText(/of all shreds received\./).waitFor();
    await page.getByText(/^p50 .* · p99 .* · max /).waitFor();
    const cursor = page.getByRole("slider", { name: "Coverage, slot by slot" });
    await cursor.focus();
    await page.keyboard.press("Home");
    await expect
      .poll(() => cursor.getAttribute("aria-valuetext"))
      .toMatch(/^Slot \d+: .* data and .* code/);
    await page.getByText("Numbers as a table").first().click();
    const table = page.getByRole("table", { name: "Coverage of the newest slots" });
    await table.locator("tbody tr").nth(3).waitFor();
  });

  it("follows submissions live and shows the outcome of one", async () => {
    const page = await openView("transactions");
    const rows = page.getByRole("table", { name: "Newest submissions" }).locator("tbody tr");
    const landed = rows.filter({ hasText: "landed" }).first(); // the last one leaves the list soon
    await landed.waitFor();
    const before = await rows.first().locator("a").getAttribute("title");
    await expect
      .poll(() => rows.first().locator("a").getAttribute("title"), { timeout: waitMs })
      .not.toBe(before);
    const signature = await landed.locator("a").getAttribute("title");
    for (const name of ["Tip", "Priority fee"]) {
      await page.getByRole("columnheader", { name, exact: true }).waitFor();
    }
    const amounts = rows
      .filter({ has: page.locator(`a[title="${signature}"]`) })
      .locator("[title$=' lamports']");
    await amounts.nth(1).waitFor();
    const tip = await amounts.first().getAttribute("title");
    expect(tip).not.toBe("0 lamports");
    await page.getByLabel("Signature of a transaction").fill(`${signature} `);
    await page.getByRole("button", { name: "Look up" }).click();
    await page.getByRole("img", { name: /^Timeline: .* to landed/ }).waitFor();
    await page.locator(".facts > div", { hasText: /^Tip/ }).getByText(`(${tip})`).waitFor();
    await page.locator(".facts > div", { hasText: /^Priority fee/ }).waitFor();
    await page.getByText("outcome known after").waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await scrollsSideways(page)).toBe(false);
    await page.setViewportSize({ width: 1280, height: 860 });
    const events = page.getByRole("table", { name: "Events of the transaction" });
    const kinds = await events.locator("tbody th").allTextContents();
    expect(kinds[0]).toBe("received");
    expect(kinds).toEqual(expect.arrayContaining(["queued", "sent", "seen", "landed"]));
    const sent = events.locator("tr", { hasText: "sent" }).filter({ hasText: "swqos" }).first();
    expect(await sent.textContent()).toMatch(/^\+[\d.]+\sms/);
    await page.getByLabel("Signature of a transaction").fill("5h6x");
    await page.getByRole("button", { name: "Look up" }).click();
    const problem = page.getByRole("alert").filter({ hasText: "it has 4 characters" });
    await problem.waitFor();
    expect(await problem.getByRole("button").count()).toBe(0);
  });

  it("filters the newest submissions by state", async () => {
    const page = await openView("transactions");
    const rows = page.getByRole("table", { name: "Newest submissions" }).locator("tbody tr");
    await rows
      .filter({ hasText: "landed" })
      .filter({ hasText: /\d\sms/ })
      .first()
      .waitFor();
    await page.getByLabel("State").selectOption("landed");
    await expect.poll(() => rows.filter({ hasText: "open" }).count()).toBe(0);
    expect(await rows.count()).toBeGreaterThan(0);
  });

  it("allows no more destinations than the maximum, and says why", async () => {
    const add = (port: number) =>
      ask(key, "addDestination", [{ region: "frankfurt", address: `127.0.0.1:${port}` }]);
    const ids = [await add(39_101), await add(39_102)].map((added) => Object(added).id);
    const page = await openView("feed");
    await page.getByText("2 of 2 destinations; remove one to add another").waitFor();
    expect(await page.getByRole("button", { name: "Add a destination" }).isDisabled()).toBe(true);
    await page.getByText("Start the receiver, then send a challenge now.").first().waitFor();
    for (const id of ids) await ask(key, "removeDestination", [id]);
    await expect
      .poll(() => page.getByRole("button", { name: "Add a destination" }).isEnabled())
      .toBe(true);
  });

  it("shows the service to its operator", async () => {
    const page = await openView("operator");
    for (const source of ["fra-a", "fra-b", "nyc-a"]) {
      await page.getByRole("table", { name: "Sources" }).getByText(source).waitFor();
    }
    await page.getByRole("table", { name: "Routes" }).getByText("swqos").first().waitFor();
    await page.getByRole("table", { name: "Workers" }).getByText("worker 0").waitFor();
    await page.getByRole("table", { name: "Verdicts" }).getByText("duplicate").first().waitFor();
    await page.getByRole("table", { name: "Fan-out" }).getByText("alpha").waitFor();
    await go(page, "tips");
    await page
      .getByText(/No tip has landed yet|refreshed/)
      .first()
      .waitFor();
  });

  it("rotates a key: shows it once, accepts it, and continues the session", async () => {
    const page = await openView("keys");
    await page.getByRole("button", { name: "Rotate" }).click();
    const dialog = page.getByRole("dialog", { name: "Rotate the key" });
    await dialog.getByRole("button", { name: "Rotate" }).click();
    const created = (await dialog.locator("pre").textContent()) ?? "";
    expect(created).toMatch(/^sw_/);
    await dialog.getByRole("button", { name: "Copy new key" }).click();
    await expect.poll(() => page.evaluate<string>("navigator.clipboard.readText()")).toBe(created);
    expect(await ask(created, "getTier")).toMatchObject({ windowHours: 24 });
    await dialog.getByRole("button", { name: "I have stored it" }).click();
    await page.locator("li.card", { hasText: "expiring" }).waitFor();
    expect(await page.content()).not.toContain(created);
    await page.reload();
    await page.locator("li.card", { hasText: "this session" }).waitFor();
  });

  it("can be operated by keyboard only", async () => {
    const page = await openView("overview");
    const focused = () =>
      page.evaluate<string>("document.activeElement.textContent || document.activeElement.tagName");
    await page.keyboard.press("Tab");
    await expect.poll(focused).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    await expect.poll(focused).toBe("Overview");
    await page.keyboard.press("Shift+Tab");
    while (!(await focused()).startsWith("Feed")) await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await page.locator("h1", { hasText: "Feed" }).waitFor();
    await expect.poll(focused).toBe("Feed");
    await page.keyboard.press("Tab");
    await expect.poll(focused).toBe("Add a destination");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Add a destination" });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await expect.poll(focused).toBe("Add a destination");
    const outline = await page.evaluate<string>(
      "getComputedStyle(document.activeElement).outlineStyle",
    );
    expect(outline).toBe("solid");
  });

  it.each(["light", "dark"] as const)("passes the accessibility rules in %s", async (scheme) => {
    const created = await signedInContext({ colorScheme: scheme });
    const own = watch(created);
    const page = await openView("overview", created);
    for (const view of viewNames) {
      await go(page, view);
      await page.locator(".loading").first().waitFor({ state: "detached" });
      expect(await accessibilityViolations(page), view).toEqual([]);
    }
    expect(own.found).toEqual([]);
  });

  it("preserves the chosen colours", async () => {
    const created = await signedInContext({ colorScheme: "dark" });
    const page = await openView("overview", created);
    const back = () =>
      page.evaluate<string>("getComputedStyle(document.body.parentElement).backgroundColor");
    await expect.poll(back).toBe("rgb(14, 17, 19)");
    await page.getByRole("button", { name: /^Colours: system setting/ }).click();
    await expect.poll(back).toBe("rgb(244, 246, 247)");
    await page.reload();
    await page.getByRole("button", { name: /^Colours: light/ }).waitFor();
    await expect.poll(back).toBe("rgb(244, 246, 247)");
  });

  it.each([320, 360])("fits a phone %i pixels wide, with large touch targets", async (width) => {
    const viewport = { width, height: 740 };
    const created = await signedInContext({ viewport, hasTouch: true, isMobile: true });
    const page = await openView("overview", created);
    for (const view of viewNames) {
      await go(page, view);
      await page.locator(".loading").first().waitFor({ state: "detached" });
      expect(await scrollsSideways(page), view).toBe(false);
      expect(await smallTargets(page, 44), view).toEqual([]);
      expect(await overflowing(page, ".tiles > div, .facts > div, .meter"), view).toEqual([]);
    }
    await go(page, "overview");
    for (const column of ["Signature", "Tier"]) {
      await page.getByRole("columnheader", { name: column, exact: true }).waitFor();
    }
  });

  it("reports that the service is unreachable, reconnects, and asks for the key again", async () => {
    const page = await openView("overview");
    await service.kill();
    await page.getByRole("status").filter({ hasText: "Reconnecting" }).waitFor();
    await page.getByText(/^in \d+ s$/).waitFor();
    await page.getByText("Not live: the values are those of").waitFor();
    await page.getByText("0.31 of 0.5 SOL for tier-2").waitFor();
    // While the service is down, so that the page cannot reconnect on its own before the click.
    const attempt = page.waitForEvent("requestfailed");
    await page.getByRole("button", { name: "Reconnect now" }).click();
    await attempt;
    await start();
    await page.getByText("Your session has ended. Sign in again.").waitFor();
    complaints.found.splice(0);
    await signIn(page, key);
    await page
      .getByRole("status")
      .filter({ hasText: /^Live$/ })
      .waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    // Read as a whole, so that a failure shows what the page says instead.
    const shown = () => page.locator("body").innerText();
    await expect.poll(shown, { timeout: waitMs }).toContain("You are signed out.");
  });
});
