// A transaction of version 1 as JSON: no lookups, and the values that it requests.

import { base58 } from "@scure/base";
import { expect, it } from "vitest";
import { transactionJson } from "../../../src/relay/streams/transaction-json.ts";
import { readWireTransaction } from "../../../src/relay/streams/wire-transaction.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

it("contains the requested values of version 1, exactly", () => {
  const payer = new SandboxKeyPair(new Uint8Array(32).fill(1));
  const [to, blockhash] = [new Uint8Array(32).fill(2), new Uint8Array(32).fill(3)];
  const fee = 2n ** 60n + 1n;
  const wire = v1Transfer(payer, to, 5n, {
    blockhash,
    priorityFeeLamports: fee,
    loadedBytesLimit: 4096,
  });
  const text = transactionJson(readWireTransaction(wire));
  expect(text).toContain(`"priorityFee":${fee}`);
  expect(JSON.parse(text)).toMatchObject({
    signatures: [base58.encode(wire.subarray(-64))],
    message: {
      header: { numRequiredSignatures: 1, numReadonlyUnsignedAccounts: 1 },
      accountKeys: [payer.publicKey, to, new Uint8Array(32)].map((key) => base58.encode(key)),
      recentBlockhash: base58.encode(blockhash),
      instructions: [{ programIdIndex: 2, accounts: [0, 1], stackHeight: 1 }],
      config: { loadedAccountsDataSizeLimit: 4096 },
    },
  });
  expect(text).not.toContain("addressTableLookups");
  expect(text).not.toContain("computeUnitLimit");
});
