// Journal of the landing benchmark: what it stores comes back, one process at a time, damage is an error.

import { appendFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Journal } from "../../../src/tools/land/journal.ts";
import type { RoundRecord, TransactionEnd } from "../../../src/tools/land/records.ts";
import { closing } from "../../support/closing.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const head = {
  run: "0123abcd",
  startedNs: 1_795_000_000_000_000_123n,
  genesisHash: "genesis",
  payer: "payer",
  plan: { rounds: "2" },
};

function roundOf(round: number, nonce: string | null): RoundRecord {
  return {
    round,
    slot: 7,
    lastValidBlockHeight: nonce === null ? 157 : null,
    nonce,
    transactions: [0, 1].map((sender) => ({
      sender,
      signature: `signature ${round} ${sender}`,
      lamports: 2n ** 60n + BigInt(sender),
      answer: null,
      end: null,
    })),
  };
}

const answer = {
  sentNs: 2n ** 60n,
  order: 1,
  responseNs: 12.5,
  error: { reason: "a", message: "b" },
};
const end: TransactionEnd = {
  state: "failed",
  landing: {
    slot: 9,
    slots: -1,
    timeNs: null,
    via: "shreds",
    shred: { fecSet: 32, shredIndex: 40, batchIndex: 33, ordinal: 2 },
    block: { index: 3, transactions: 20 },
    error: '{"InstructionError":[0,{"Custom":1}]}',
  },
};

describe("a journal", () => {
  it("returns everything that it stores, exactly", async () => {
    const path = join(temporaryFolder(), "journal");
    const journal = await Journal.create(path, head);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    journal.round(roundOf(1, null));
    journal.answer(1, 0, answer);
    journal.end(1, 0, end);
    journal.round(roundOf(2, "nonce"));
    journal.close();
    journal.answer(2, 0, answer); // too late: ignored
    expect(() => journal.round(roundOf(3, null))).toThrow("cannot be written");
    const { journal: again, state } = await Journal.resume(path);
    closing(again);
    const [first, second] = [roundOf(1, null), roundOf(2, "nonce")];
    Object.assign(first.transactions[0] ?? {}, { answer, end });
    expect(state).toEqual({ head, rounds: [first, second], isFinished: false });
  });

  it("belongs to one process, and is never replaced", async () => {
    const path = join(temporaryFolder(), "journal");
    const journal = closing(await Journal.create(path, head));
    await expect(Journal.resume(path)).rejects.toThrow("in use by another process");
    await expect(Journal.create(path, head)).rejects.toThrow("the file exists");
    journal.close();
    closing((await Journal.resume(path)).journal);
  });

  it("forgets an incomplete last line, and rejects any other damage", async () => {
    const path = join(temporaryFolder(), "journal");
    (await Journal.create(path, head)).close();
    const intact = readFileSync(path, "utf8");
    appendFileSync(path, '{"kind":"round","round":1');
    (await Journal.resume(path)).journal.close();
    expect(readFileSync(path, "utf8")).toBe(intact);
    const round =
      '{"kind":"round","round":1,"slot":1,"lastValidBlockHeight":1,"nonce":null,"transactions":[]}';
    const damages: readonly (readonly [string, string])[] = [
      ["", "expected the line of a run"],
      ['{"kind":"run","version":2}\n', "expected the line of a run of version 1"],
      [`${intact}nothing\n`, "line 2: expected a JSON object"],
      [`${intact}{"kind":"other"}\n`, "expected a known kind of line"],
      [`${intact}${round}\n${round}\n`, "line 3: expected a new round"],
      [
        `${intact}{"kind":"answer","round":1,"sender":0}\n`,
        "expected a transaction of an earlier line",
      ],
      [
        `${intact}${round.replace("[]", '[{"signature":"a","lamports":1}]')}\n`,
        'digits and "n" in lamports',
      ],
      [`${intact}{"kind":"finished"}\n`, "its run is complete"],
    ];
    for (const [text, message] of damages) {
      writeFileSync(path, text);
      await expect(Journal.resume(path)).rejects.toThrow(message);
      expect(readFileSync(path, "utf8")).toBe(text);
    }
  });
});
