// `shredway land` killed 20 times at random moments and resumed: nothing is paid twice, and the budget holds.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { parsePubkey, pubkeyBytes } from "../../../src/core/primitives.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import type { SenderSandbox } from "../../../src/sandbox/sender-sandbox.ts";
import { JournalReader } from "../../../src/tools/land/journal-reader.ts";
import { Shredway, shredway } from "../../support/processes/shredway.ts";
import { senderSandboxRun } from "./sender-sandbox-run.ts";

const kills = 20;
const rounds = 60;
/** Three transactions, each with a fee of 5,000 and a tip of 10,000. */
const roundLamports = 45_000n;
const budget = BigInt(rounds) * roundLamports;
const killMsMax = 400;

/** The transactions of the payer on the chain: the amount of the mark, and the tip. */
function landed(sandbox: SenderSandbox) {
  const payer = pubkeyBytes(parsePubkey(sandbox.payer.address));
  return sandbox.chain.signaturesFor(sandbox.payer.address).map(({ signature }) => {
    const found = sandbox.chain.transaction(signature);
    if (!found) throw new RangeError(`expected the transaction ${signature} on the chain`);
    const { keys, instructions } = parseTransaction(found.transaction.wire);
    const amounts = instructions
      .filter(({ data }) => data.length === 12)
      .map(({ accounts, data }) => ({
        isMark: encodeBase58(keys[accounts[1] ?? 0] ?? payer) === sandbox.payer.address,
        lamports: new DataView(data.buffer, data.byteOffset).getBigUint64(4, true),
      }));
    return {
      signature,
      cost: found.transaction.fee + (amounts.find(({ isMark }) => !isMark)?.lamports ?? 0n),
      mark: amounts.find(({ isMark }) => isMark)?.lamports ?? 0n,
    };
  });
}

it("pays nothing twice after 20 kills, and keeps the budget", { timeout: 600_000 }, async () => {
  const { sandbox, folder, args } = await senderSandboxRun();
  const before = sandbox.chain.account(sandbox.payer.address)?.lamports ?? 0n;
  const journal = join(folder, "land.journal");
  const random = new SeededRandom(29);
  const words = ["--rounds", `${rounds}`, "--interval", "60", "--budget", `${budget}`];
  const rest = [...args, ...words, "--wait", "5", "--poll", "50"];
  const command = () => ["land", ...rest, existsSync(journal) ? "--resume" : "--journal", journal];
  for (let i = 0; i < kills; i++) {
    const running = Shredway.run(...command());
    await running.printed(/^journal /m);
    await systemClock.sleep(random.below(killMsMax));
    await running.kill();
  }
  const last = await shredway(...command());
  expect(last.stderr.replace(/^budget: used up .*\n/, "")).toBe("");
  expect(last.code).toBe(0);

  const state = new JournalReader(journal).read(
    readFileSync(journal, "utf8").trimEnd().split("\n"),
    1,
  );
  expect(state.isFinished).toBe(true);
  const signed = state.rounds.flatMap(({ transactions }) => transactions);
  const signatures = new Set(signed.map(({ signature }) => signature));
  expect(signatures.size).toBe(signed.length);
  expect(signed.reduce((sum, { lamports }) => sum + lamports, 0n)).toBeLessThanOrEqual(budget);
  // At the chain: each mark belongs to one round and one sender, and only journalled transactions landed.
  const transactions = landed(sandbox);
  expect(transactions.length).toBeGreaterThan(rounds);
  expect(new Set(transactions.map(({ mark }) => mark)).size).toBe(transactions.length);
  expect(transactions.filter(({ signature }) => !signatures.has(signature))).toEqual([]);
  const spent = before - (sandbox.chain.account(sandbox.payer.address)?.lamports ?? 0n);
  expect(spent).toBe(transactions.reduce((sum, { cost }) => sum + cost, 0n));
  expect(spent).toBeLessThanOrEqual(budget);
  // The report agrees with the chain.
  expect(last.stdout).toContain(`spent ${spent.toLocaleString("en-US")};`);
});
