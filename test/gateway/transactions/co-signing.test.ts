// The co-signing check against attacks with two client libraries, and against a second
// implementation of its rules. A wrongly accepted transaction would get another owner's signature.

import { getCompiledTransactionMessageDecoder, getTransactionDecoder } from "@solana/kit";
import { VersionedTransaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { NonceAdvancePosition } from "../../../src/gateway/nonces/co-signing.ts";
import { NativeCoSigningCheck } from "../../../src/gateway/transactions/co-signing.ts";
import { coSigningRefusalNames } from "../../../src/relay/data-plane/names.ts";
import { native } from "../../../src/relay/data-plane/native.ts";
import { verifySignatures } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import {
  AdvanceMaker,
  advance,
  authorise,
  authority,
  bob,
  built,
  type Choices,
  carol,
  cosigner,
  type Library,
  lifetime,
  memo,
  mention,
  nonceAccount,
  otherNonce,
  payer,
  paying,
  signing,
  system,
  systemCall,
  sysvar,
  transfer,
  type Words,
  withdraw,
  writing,
} from "../../support/transactions/nonce-transactions.ts";
import { type Decoded, decodeByKit, decodeByWeb3 } from "./transactions-reference.ts";

const check = new NativeCoSigningCheck();

function placeOf(
  wire: Uint8Array,
  account = nonceAccount,
  signer = authority,
): NonceAdvancePosition {
  return check.place(wire, account.publicKey, signer.publicKey);
}

/** The name of the refusal, or "accepted". */
function answerOf(wire: Uint8Array, account = nonceAccount, signer = authority): string {
  try {
    placeOf(wire, account, signer);
    return "accepted";
  } catch (thrown) {
    if (!(thrown instanceof ShredwayError)) throw thrown;
    const { details, reason } = thrown;
    const refusal = details && "refusal" in details ? details.refusal : "undefined";
    return reason === "co_signing_refused" ? refusal : `${reason}: ${refusal}`;
  }
}

// ---- second implementation of the rules -----------------------------------------------------

const zeros = Buffer.alloc(64);

function isZeros(signature: Uint8Array | undefined): boolean {
  return signature !== undefined && zeros.equals(signature);
}

function tablesOf(wire: Uint8Array): string[] {
  const { message } = VersionedTransaction.deserialize(wire);
  if (message.version !== 0) return [];
  return message.addressTableLookups.map(({ accountKey }) => accountKey.toBase58());
}

/** Broken rules; empty: the authority may sign. */
function breaches(decoded: Decoded, tables: readonly string[]): string[] {
  const { keys, instructions, requiredSignatures, readonlySigned, readonlyUnsigned } = decoded;
  const nameOf = (place: number) => keys[place] ?? `loaded ${place}`;
  const [first] = instructions;
  const place = keys.indexOf(authority.address);
  const nonceIndex = keys.indexOf(nonceAccount.address);
  const isNonceReadonly =
    nonceIndex < requiredSignatures
      ? nonceIndex >= requiredSignatures - readonlySigned
      : nonceIndex >= keys.length - readonlyUnsigned;
  const mentions = instructions.flatMap(({ program, accounts }) => [program, ...accounts]);
  const expected = [nonceAccount.address, sysvar, authority.address].join();
  const missing = decoded.signatures.flatMap((one, i) => (isZeros(one) ? [nameOf(i)] : []));
  const rules: readonly [string, boolean][] = [
    ["version", decoded.version !== 1],
    ["a static key", place >= 0],
    ["no payer", place !== 0],
    ["signs", place < requiredSignatures],
    ["read-only", place >= requiredSignatures - readonlySigned],
    ["an advance first", first !== undefined && nameOf(first.program) === system],
    ["four bytes", Buffer.from(first?.data ?? []).equals(Buffer.from([4, 0, 0, 0]))],
    ["three accounts", first?.accounts.map(nameOf).join() === expected],
    ["a writable nonce", nonceIndex >= 0 && !isNonceReadonly],
    ["mentioned once", mentions.filter((each) => each === place).length === 1],
    ["no table", !tables.includes(authority.address)],
    ["alone missing", missing.join() === authority.address],
  ];
  return rules.filter(([, holds]) => !holds).map(([name]) => name);
}

/** The signature must be where the libraries put it, over the message that they sign. */
function expectPosition(wire: Uint8Array, place: NonceAdvancePosition): void {
  const message = Buffer.from(wire.subarray(place.messageBegin, place.messageEnd));
  expect(message.equals(VersionedTransaction.deserialize(wire).message.serialize())).toBe(true);
  const byKit = getTransactionDecoder().decode(wire);
  expect(message.equals(Uint8Array.from(byKit.messageBytes))).toBe(true);
  const compiled = getCompiledTransactionMessageDecoder().decode(byKit.messageBytes);
  expect("lifetimeToken" in compiled && compiled.lifetimeToken).toBe(lifetime);
  expect(Buffer.from(place.lifetime)).toEqual(Buffer.alloc(32, 9));
  const signed = Uint8Array.from(wire);
  signed.set(authority.sign(message), place.signatureAt);
  verifySignatures(parseTransaction(signed));
  expect(answerOf(signed)).toBe("nothing_missing");
}

// ---- attacks --------------------------------------------------------------------------------

const rest = transfer(paying(payer), writing(bob));
const everyCombination: readonly Choices[] = [
  { library: "web3.js", version: "legacy" },
  { library: "web3.js", version: 0 },
  { library: "web3.js", version: 0, table: [bob.address, carol.address] },
  { library: "kit", version: "legacy" },
  { library: "kit", version: 0 },
  { library: "kit", version: 0, table: [bob.address, carol.address] },
];
const { accounts: advanceAccounts, data: advanceData } = advance();
const inAdvance = (index: number, account: Words["accounts"][number]) =>
  advance({ accounts: advanceAccounts.with(index, account) });

const attacks: readonly [string, readonly Words[], Choices, string][] = [
  ["nothing", [], {}, "not_an_advance"],
  ["the advance as the second", [rest, advance()], {}, "not_an_advance"],
  ["a withdrawal", [withdraw()], {}, "not_an_advance"],
  ["a change of the authority", [authorise()], {}, "not_an_advance"],
  ["a transfer of its own", [transfer(paying(authority), writing(bob))], {}, "not_an_advance"],
  ["the advance by another program", [advance({ program: memo })], {}, "not_an_advance"],
  ["cut data", [advance({ data: advanceData.subarray(0, 3) })], {}, "not_an_advance"],
  ["data beyond", [advance({ data: Uint8Array.of(...advanceData, 0) })], {}, "advance_data"],
  [
    "a missing account",
    [advance({ accounts: advanceAccounts.slice(0, 2) })],
    {},
    "advance_accounts",
  ],
  [
    "an extra account",
    [advance({ accounts: [...advanceAccounts, writing(bob)] })],
    {},
    "advance_accounts",
  ],
  ["the authority twice in it", [inAdvance(1, signing(authority))], {}, "advance_accounts"],
  ["another sysvar", [inAdvance(1, { address: memo })], {}, "advance_accounts"],
  ["another nonce", [inAdvance(0, writing(otherNonce)), rest], {}, "other_nonce_account"],
  [
    "a read-only nonce",
    [inAdvance(0, { address: nonceAccount.address })],
    {},
    "nonce_account_readonly",
  ],
  ["another authority", [inAdvance(2, signing(cosigner))], {}, "other_authority"],
  [
    "the authority not as a signer",
    [inAdvance(2, { address: authority.address })],
    {},
    "authority_not_signer",
  ],
  ["the authority as fee payer", [advance(), rest], { payer: authority }, "authority_pays_fees"],
  ["the authority as writable", [inAdvance(2, paying(authority)), rest], {}, "authority_writable"],
  [
    "a transfer by it behind",
    [advance(), rest, transfer(paying(authority), writing(bob))],
    {},
    "authority_writable",
  ],
  [
    "a transfer by it, read-only",
    [advance(), transfer(signing(authority), writing(bob))],
    {},
    "authority_used_elsewhere",
  ],
  ["a withdrawal behind", [advance(), rest, withdraw()], {}, "authority_used_elsewhere"],
  ["a change of the authority behind", [advance(), authorise()], {}, "authority_used_elsewhere"],
  ["a second advance", [advance(), advance()], {}, "authority_used_elsewhere"],
  [
    "the advance of a second nonce",
    [advance(), inAdvance(0, writing(otherNonce))],
    {},
    "authority_used_elsewhere",
  ],
  [
    "an assignment of its account",
    [advance(), systemCall(1, [signing(authority)], bob.publicKey)],
    {},
    "authority_used_elsewhere",
  ],
  [
    "a program that gets it as an account",
    [advance(), mention(signing(authority))],
    {},
    "authority_used_elsewhere",
  ],
  [
    "a program that gets it as the last account",
    [advance(), rest, mention(writing(bob), signing(cosigner), { address: authority.address })],
    {},
    "authority_used_elsewhere",
  ],
  [
    "itself as program",
    [advance(), mention(), { ...mention(), program: authority.address }],
    {},
    "authority_used_elsewhere",
  ],
  ["its signature there", [advance(), rest], { missing: [] }, "nothing_missing"],
  [
    "the payer's signature missing, too",
    [advance(), rest],
    { missing: [authority, payer] },
    "other_signature_missing",
  ],
  [
    "a third signature missing, too",
    [advance(), mention(signing(cosigner))],
    { missing: [authority, cosigner] },
    "other_signature_missing",
  ],
];

describe("place", () => {
  it.each(everyCombination)("accepts an advance with other instructions: %o", (choices) => {
    for (const words of [
      [advance()],
      [advance(), rest, mention(signing(cosigner), writing(carol))],
      [advance(), transfer(paying(payer), writing(nonceAccount)), mention(writing(nonceAccount))],
      [advance(), { ...mention(), data: authority.publicKey }],
    ]) {
      const wire = built(words, choices);
      expectPosition(wire, placeOf(wire));
    }
  });

  it.each(attacks)("refuses %s", (_, words, choices, refusal) => {
    for (const way of everyCombination) {
      expect(answerOf(built(words, { ...way, ...choices }))).toBe(refusal);
    }
  });

  it("refuses keys that only a lookup table contains", () => {
    for (const library of ["web3.js", "kit"] as const) {
      const answer = (words: readonly Words[], ...table: string[]) =>
        answerOf(built(words, { library, table }));
      expect(answer([advance()], nonceAccount.address)).toBe("nonce_account_loaded");
      expect(answer([advance()], sysvar)).toBe("advance_accounts");
      const unsigned = [inAdvance(2, { address: authority.address })];
      expect(answer(unsigned, authority.address)).toBe("authority_loaded");
    }
  });

  it("refuses version 1 with any content", () => {
    for (const missing of [[authority], []]) {
      const wire = built([advance(), rest], { library: "kit", version: 1, missing });
      expect(wire[0]).toBe(0x81);
      expect(answerOf(wire)).toBe("version_1");
    }
  });

  it("refuses the keys of another owner", () => {
    const wire = built([advance(), rest, mention(signing(cosigner))]);
    expect(answerOf(wire, otherNonce)).toBe("other_nonce_account");
    expect(answerOf(wire, nonceAccount, cosigner)).toBe("other_authority");
    expect(answerOf(wire, nonceAccount, payer)).toBe("other_authority");
  });

  it("refuses invalid transactions", () => {
    const wire = built([advance(), rest]);
    expect(answerOf(Uint8Array.of(...wire, 0))).toBe("transaction_invalid: trailing_bytes");
    expect(answerOf(wire.subarray(0, -1))).toBe("transaction_invalid: cut_short");
    expect(answerOf(new Uint8Array(5000))).toBe("transaction_invalid: too_long");
    expect(answerOf(new Uint8Array(0))).toBe("transaction_invalid: cut_short");
    const unknown = Uint8Array.from(wire);
    unknown[1 + 2 * 64] = 0x85;
    expect(answerOf(unknown)).toBe("transaction_version: version_unknown");
    const twice = Uint8Array.from(wire);
    const at = Buffer.from(wire).indexOf(nonceAccount.publicKey);
    twice.set(authority.publicKey, at);
    expect(answerOf(twice)).toBe("transaction_invalid: key_repeated");
  });

  it("reports the expected and the received value", () => {
    const wire = built([advance(), rest, withdraw()]);
    expect(() => placeOf(wire)).toThrow(
      /^co-signing: expected the authority in the advance alone, got the authority in instruction 2 \(offset \d+\)$/,
    );
  });

  it("accepts views of larger buffers, and rejects keys of another length", () => {
    const wire = built([advance(), rest]);
    const memory = new Uint8Array(wire.length + 20).fill(255);
    memory.set(wire, 7);
    expect(placeOf(memory.subarray(7, 7 + wire.length))).toEqual(placeOf(wire));
    const short = nonceAccount.publicKey.subarray(1);
    expect(() => check.place(wire, short, authority.publicKey)).toThrow(
      "nonceAccount: expected 32 bytes, got 31",
    );
    expect(() => check.place(wire, nonceAccount.publicKey, new Uint8Array(33))).toThrow(
      "authority: expected 32 bytes, got 33",
    );
    const room = new Uint8Array(55);
    const { publicKey } = authority;
    expect(() => native().findCoSigningPlace(wire, publicKey, publicKey, room)).toThrow(
      "into: expected 56 bytes, got 55",
    );
  });
});

// ---- random transactions --------------------------------------------------------------------

describe("random transactions", () => {
  it.each<[Library, number]>([
    ["web3.js", 1],
    ["web3.js", 2],
    ["web3.js", 3],
    ["kit", 4],
    ["kit", 5],
  ])("accepts exactly when all rules hold: %s, seed %d", (library, seed) => {
    const maker = new AdvanceMaker(new SeededRandom(seed));
    const answers = new Map<string, number>();
    for (let i = 0; i < 600; i++) {
      const wire = maker.make(library);
      const decoded = decodeByWeb3(wire);
      expect(decodeByKit(wire)).toEqual(decoded);
      const answer = answerOf(wire);
      const wrong = breaches(decoded, tablesOf(wire));
      expect(answer === "accepted", `${answer}; ${wrong.join(", ")}`).toBe(wrong.length === 0);
      if (answer === "accepted") expectPosition(wire, placeOf(wire));
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
    // Enough of every kind; otherwise agreement proves little.
    expect(answers.get("accepted")).toBeGreaterThan(150);
    expect(answers.get("authority_used_elsewhere")).toBeGreaterThan(20);
    expect(answers.size).toBeGreaterThan(8);
    for (const name of answers.keys()) expect(coSigningRefusalNames).toContain(name);
  });

  it("no changed byte makes an accepted transaction break a rule", () => {
    const random = new SeededRandom(6);
    let places = 0;
    for (const choices of everyCombination) {
      const wire = built([advance(), rest, mention(signing(cosigner))], choices);
      for (let at = 0; at < wire.length; at++) {
        const corrupted = Uint8Array.from(wire);
        const before = corrupted[at] ?? 0;
        corrupted[at] = random.happens(0.5) ? before ^ (1 << random.below(8)) : random.below(256);
        if (answerOf(corrupted) !== "accepted") continue;
        expect(breaches(decodeByWeb3(corrupted), tablesOf(corrupted))).toEqual([]);
        places++;
      }
    }
    expect(places).toBeGreaterThan(500);
  });
});
