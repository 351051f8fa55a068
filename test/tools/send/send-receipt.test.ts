// Receipts of the typed client and of `shredway send --receipt`, with a running sandbox.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifyReceipt } from "../../../src/client/index.ts";
import { ClientHarness } from "../../client/client-harness.ts";
import { shredwayHere } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let opening: Promise<ClientHarness>;
beforeAll(() => {
  opening = ClientHarness.open();
});
afterAll(async () => (await opening).close());

async function tipped(harness: ClientHarness): Promise<Uint8Array> {
  const [address = ""] = await harness.client().getTipAccounts();
  return harness.tip(20_000, address);
}

it("onReceipt gets the receipt of the acceptance, getReceipt that of any state", async () => {
  const harness = await opening;
  const client = harness.client();
  const keys = await client.getSigningKeys();
  const received: (string | null)[] = [];
  const onReceipt = (receipt: string | null) => void received.push(receipt);
  const signature = await client.sendTransaction(await tipped(harness), { onReceipt });
  expect(received).toHaveLength(1);
  const accepted = await verifyReceipt(received[0] ?? "", keys);
  expect(accepted).toMatchObject({
    statement: "accepted",
    transactions: [{ signature, end: null }],
  });
  await client.waitForEnd(signature);
  const final = await verifyReceipt(await client.getReceipt(signature), keys);
  expect(final).toMatchObject({
    statement: "final",
    transactions: [{ signature, end: { state: "landed" } }],
  });
  const earlier = await client.getReceipt(signature, { statement: "accepted" });
  expect(await verifyReceipt(earlier, keys)).toMatchObject({ statement: "accepted" });
  await expect(client.getReceipt("1".repeat(64))).rejects.toMatchObject({
    reason: "receipt_unknown",
  });
  // Without the option nothing is requested.
  await client.sendTransaction(await tipped(harness));
  expect(received).toHaveLength(1);
});

it("send --receipt stores verified receipts of the acceptance and of the final state", async () => {
  const harness = await opening;
  const folder = temporaryFolder();
  const [file, transaction] = [join(folder, "receipts.txt"), join(folder, "transaction.bin")];
  writeFileSync(transaction, await tipped(harness));
  const args = ["--file", transaction, "--url", harness.url, "--wait", "--receipt", file];
  const { code, stdout, stderr } = await shredwayHere("send", ...args);
  expect(code).toBe(0);
  expect(stderr).toContain(`receipts: 2 verified, in ${file}`);
  const [signature = ""] = stdout.split(" ");
  const keys = await harness.client().getSigningKeys();
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const read = await Promise.all(lines.map((line) => verifyReceipt(line, keys)));
  expect(
    read.map(({ statement, transactions }) => [statement, transactions[0]?.signature]),
  ).toEqual([
    ["accepted", signature],
    ["final", signature],
  ]);
  const origin = new URL(harness.url).origin;
  const verified = await shredwayHere("verify-receipt", "--file", file, "--url", origin);
  expect(verified.code).toBe(0);
});

it("send --receipt sends nothing if the file cannot be written", async () => {
  const harness = await opening;
  const path = join(temporaryFolder(), "missing", "receipts.txt");
  const text = Buffer.from(await tipped(harness)).toString("base64");
  const { code, stdout, stderr } = await shredwayHere(
    "send",
    text,
    "--url",
    harness.url,
    "--receipt",
    path,
  );
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(`--receipt: cannot write ${path}`);
});
