import { base58 } from "@scure/base";
import { Message, PublicKey, TransactionMessage, VersionedTransaction } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { buildTransaction } from "../../../src/core/transactions/build-legacy.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { isStaticWritable, parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { addressOf, alice, bob, ChainRun, transferOf } from "../../support/transactions/chain.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

describe("encodeBase58", () => {
  it("agrees with the library that the rest of the program uses", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat({ max: 5 }), (bytes, zeros) => {
        const all = Uint8Array.of(...new Uint8Array(zeros), ...bytes);
        expect(encodeBase58(all)).toBe(base58.encode(all));
      }),
    );
  });
});

describe("parseTransaction", () => {
  const key = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => new PublicKey(bytes));
  const instruction = fc.record({
    programId: key,
    keys: fc.array(fc.record({ pubkey: key, isSigner: fc.boolean(), isWritable: fc.boolean() }), {
      maxLength: 4,
    }),
    data: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  });

  it("parses transactions of web3.js, legacy and v0", () => {
    fc.assert(
      fc.property(
        key,
        fc.array(instruction, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        (payerKey, instructions, isLegacy) => {
          // A validator rejects a program that pays for its own call.
          fc.pre(instructions.every(({ programId }) => !programId.equals(payerKey)));
          const draft = new TransactionMessage({
            payerKey,
            recentBlockhash: payerKey.toBase58(),
            instructions,
          });
          const message = isLegacy ? draft.compileToLegacyMessage() : draft.compileToV0Message();
          const wire = new VersionedTransaction(message).serialize();
          fc.pre(wire.length <= 1232); // a few of the largest exceed a packet
          const parsed = parseTransaction(wire);
          expect(parsed.version).toBe(isLegacy ? "legacy" : 0);
          expect(parsed.keys.map(encodeBase58)).toEqual(
            message.staticAccountKeys.map((each) => each.toBase58()),
          );
          expect(encodeBase58(parsed.blockhash)).toBe(message.recentBlockhash);
          expect(
            parsed.instructions.map(({ program, accounts, data }) => ({
              programIdIndex: program,
              accountKeyIndexes: [...accounts],
              data: [...data],
            })),
          ).toEqual(
            message.compiledInstructions.map(({ programIdIndex, accountKeyIndexes, data }) => ({
              programIdIndex,
              accountKeyIndexes,
              data: [...data],
            })),
          );
          parsed.keys.forEach((_, i) => {
            expect(isStaticWritable(parsed, i)).toBe(message.isAccountWritable(i));
          });
        },
      ),
    );
  });

  it("rejects every shorter and every longer form of a transaction", () => {
    const payer = SandboxKeyPair.named(1, "payer");
    const wire = buildTransaction(
      [payer],
      [{ program: new Uint8Array(32).fill(9), accounts: [], data: new Uint8Array(200) }],
      new Uint8Array(32),
    );
    const v1 = v1Transfer(payer, new Uint8Array(32).fill(3), 1n, {
      blockhash: new Uint8Array(32),
      priorityFeeLamports: 1n,
      computeUnitLimit: 1,
    });
    for (const whole of [wire, v1]) {
      expect(parseTransaction(whole).signatures.length).toBe(1);
      for (let length = 0; length < whole.length; length++) {
        expect(() => parseTransaction(whole.subarray(0, length))).toThrow(ShredwayError);
      }
      expect(() => parseTransaction(Uint8Array.of(...whole, 0))).toThrow(ShredwayError);
    }
  });

  it("rejects lengths that are not in their shortest form", () => {
    const wire = buildTransaction(
      [SandboxKeyPair.named(1, "payer")],
      [{ program: new Uint8Array(32).fill(9), accounts: [], data: new Uint8Array(0) }],
      new Uint8Array(32),
    );
    expect(() => parseTransaction(Uint8Array.of(0x81, 0, ...wire.subarray(1)))).toThrow(
      ShredwayError,
    );
    const longer = [...wire.subarray(0, 68), 0x82, 0, ...wire.subarray(69)];
    expect(wire[68]).toBe(2);
    expect(() => parseTransaction(Uint8Array.from(longer))).toThrow(/shortest form of a length/);
  });

  it("builds transactions that web3.js reads", () => {
    const payer = SandboxKeyPair.named(1, "payer");
    const other = SandboxKeyPair.named(1, "other");
    const program = SandboxKeyPair.named(1, "program").publicKey;
    const wire = buildTransaction(
      [payer, other],
      [
        {
          program,
          accounts: [
            { key: other.publicKey, isSigner: true, isWritable: false },
            { key: payer.publicKey, isSigner: false, isWritable: false },
            { key: new Uint8Array(32).fill(4), isSigner: false, isWritable: true },
            { key: new Uint8Array(32).fill(5), isSigner: false, isWritable: false },
          ],
          data: Uint8Array.from({ length: 300 }, (_, i) => i & 0xff),
        },
      ],
      new Uint8Array(32).fill(6),
    );
    const { message, signatures } = VersionedTransaction.deserialize(wire);
    expect(message).toBeInstanceOf(Message);
    expect(message.header).toEqual({
      numRequiredSignatures: 2,
      numReadonlySignedAccounts: 1,
      numReadonlyUnsignedAccounts: 2,
    });
    expect(signatures.length).toBe(2);
    expect(message.compiledInstructions[0]?.accountKeyIndexes).toEqual([
      1,
      0,
      2,
      expect.any(Number),
    ]);
    expect(message.compiledInstructions[0]?.data.length).toBe(300);
  });
});

describe("hostile bytes", () => {
  it("are rejected or fail in the virtual machine, which survives and changes nothing", async () => {
    const run = await ChainRun.open({ intervalsPerSlot: 1 });
    const bases = [
      run.transfer(alice, bob, 5n),
      run.versioned([transferOf(alice, bob, 6n)], [alice]),
      v1Transfer(new SandboxKeyPair(alice.secretKey.subarray(0, 32)), bob.publicKey.toBytes(), 7n, {
        blockhash: new PublicKey(run.blockhash).toBytes(),
        computeUnitLimit: 400,
        loadedBytesLimit: 100_000,
      }),
    ];
    const before = run.chain.account(addressOf(alice));
    const changes = fc.array(
      fc.record({
        at: fc.nat({ max: 300 }),
        byte: fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0, 1, 127, 128, 255)),
        kind: fc.constantFrom("set", "insert", "remove"),
      }),
      { minLength: 1, maxLength: 4 },
    );
    let executed = 0;
    fc.assert(
      fc.property(fc.nat({ max: bases.length - 1 }), changes, (base, each) => {
        const bytes = [...(bases[base] ?? [])];
        for (const { at, byte, kind } of each) {
          bytes.splice(
            at % bytes.length,
            kind === "insert" ? 0 : 1,
            ...(kind === "remove" ? [] : [byte]),
          );
        }
        try {
          run.chain.simulate(Uint8Array.from(bytes), {
            verifySignatures: false,
            replaceBlockhash: true,
          });
          executed++;
        } catch (error) {
          expect(error).toBeInstanceOf(ShredwayError);
        }
        expect(run.chain.account(addressOf(alice))).toEqual(before);
      }),
      { numRuns: 1500 },
    );
    expect(executed).toBeGreaterThan(100);
  });
});
