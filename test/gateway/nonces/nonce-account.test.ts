import { Keypair, NONCE_ACCOUNT_LENGTH, NonceAccount, SystemProgram } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import {
  findNonceAccount,
  nonceAccountBytes,
  readNonceAccount,
  systemProgram,
} from "../../../src/gateway/nonces/nonce-account.ts";

const address = Keypair.generate().publicKey.toBase58();

function data(change: (data: Buffer) => void = () => {}, length = 80): Buffer {
  const bytes = Buffer.alloc(Math.max(80, length));
  bytes.writeUInt32LE(1, 0);
  bytes.writeUInt32LE(1, 4);
  bytes.fill(5, 8, 40);
  bytes.fill(6, 40, 72);
  change(bytes);
  return bytes.subarray(0, length);
}

describe("nonce accounts", () => {
  it("are parsed like web3.js parses them", () => {
    expect(nonceAccountBytes).toBe(NONCE_ACCOUNT_LENGTH);
    expect(systemProgram).toBe(SystemProgram.programId.toBase58());
    const bytes = fc.uint8Array({ minLength: 72, maxLength: 72 });
    fc.assert(
      fc.property(bytes, fc.nat(16), (content, offset) => {
        const whole = Buffer.alloc(offset + 80); // a view that does not start at the buffer's start
        whole.set(
          data((all) => all.set(content, 8)),
          offset,
        );
        const view = whole.subarray(offset);
        const { authorizedPubkey, nonce } = NonceAccount.fromAccountData(view);
        expect(readNonceAccount(address, { owner: systemProgram, data: view })).toEqual({
          authority: authorizedPubkey.toBase58(),
          value: nonce,
        });
      }),
    );
  });

  it.each<[string, { owner: string; data: Buffer } | null, string]>([
    ["no account", null, "got no account"],
    ["another owner", { owner: address, data: data() }, `expected owner ${systemProgram}, got`],
    [
      "no data",
      { owner: systemProgram, data: Buffer.alloc(0) },
      "expected 80 bytes of data, got 0",
    ],
    ["less data", { owner: systemProgram, data: data(undefined, 79) }, "got 79"],
    ["more data", { owner: systemProgram, data: data(undefined, 81) }, "got more"],
    [
      "the old version",
      { owner: systemProgram, data: data((all) => all.writeUInt32LE(0, 0)) },
      "expected version 1, got 0",
    ],
    [
      "no state",
      { owner: systemProgram, data: data((all) => all.writeUInt32LE(0, 4)) },
      "expected state 1 (initialised), got 0",
    ],
  ])("are rejected with %s, with the reason", (_, content, message) => {
    expect(findNonceAccount(content)).toBeNull();
    const look = () => readNonceAccount(address, content);
    expect(look).toThrow(message);
    expect(look).toThrow(address);
    expect(look).toThrow(ShredwayError);
    expect(look).toThrow(expect.objectContaining({ reason: "nonce_invalid" }));
  });

  it("are parsed or rejected for any bytes, without other errors", () => {
    const content = fc.record({
      owner: fc.oneof(fc.constant(systemProgram), fc.string()),
      data: fc.oneof(
        fc.uint8Array({ maxLength: 200 }),
        fc.uint8Array({ minLength: 80, maxLength: 80 }),
        fc.array(fc.nat(2), { minLength: 80, maxLength: 80 }).map((all) => Uint8Array.from(all)),
      ),
    });
    fc.assert(
      fc.property(content, (each) => {
        const found = findNonceAccount(each);
        if (found) expect(readNonceAccount(address, each)).toEqual(found);
        else expect(() => readNonceAccount(address, each)).toThrow(ShredwayError);
      }),
    );
  });
});
