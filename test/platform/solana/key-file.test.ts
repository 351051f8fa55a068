// Key files: permissions, content, and that no error quotes them.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { Keypair } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KeyPair } from "../../../src/core/key-pair.ts";
import { advanceNonce } from "../../../src/gateway/nonces/nonce-transactions.ts";
import {
  makeKeyFile,
  nonceKeysOf,
  openNonceKeys,
  readKeyPair,
  readSeed,
} from "../../../src/platform/solana/key-file.ts";
import { verifySignatures } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const pair = Keypair.fromSeed(new Uint8Array(32).fill(217));
const numbers = [...pair.secretKey];

function fileOf(content: string | Uint8Array, mode = 0o600): string {
  const path = join(temporaryFolder(), "key.json");
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

/** All properties of an error, at any depth. */
function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toMatchObject({ reason: "config_invalid" });
    return inspect(error, { depth: 10, showHidden: true });
  }
  throw new Error("expected a refusal");
}

describe("key files", () => {
  it("are read in the format of Solana's tools, with or without white space", () => {
    for (const [text, mode] of [
      [JSON.stringify(numbers), 0o600],
      [`${JSON.stringify(numbers, null, 2)}\n`, 0o400],
    ] as const) {
      const read = readKeyPair(fileOf(text, mode));
      expect(read.address).toBe(pair.publicKey.toBase58());
      expect([...read.publicKey]).toEqual([...pair.publicKey.toBytes()]);
    }
    expect([...readSeed(fileOf(JSON.stringify(numbers)))]).toEqual(numbers.slice(0, 32));
  });

  it("may be symbolic links", () => {
    const path = fileOf(JSON.stringify(numbers));
    const link = join(temporaryFolder(), "link.json");
    symlinkSync(path, link);
    expect(readKeyPair(link).address).toBe(pair.publicKey.toBase58());
  });

  it.each([0o640, 0o604, 0o660, 0o622, 0o700, 0o610, 0o601])("of mode %o are rejected", (mode) => {
    const path = fileOf(JSON.stringify(numbers), mode);
    const text = refusal(() => readKeyPair(path));
    expect(text).toContain(`expected mode 0600 or stricter, got 0${mode.toString(8)}`);
    expect(text).toContain(path);
  });

  it.runIf(process.geteuid?.() === 0)("of another user are refused", () => {
    const path = fileOf(JSON.stringify(numbers));
    chownSync(path, 12_345, 12_345);
    expect(refusal(() => readKeyPair(path))).toContain(
      "expected a file of user 0, got one of user 12345",
    );
  });

  it("must be regular files", () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "folder"));
    execFileSync("mkfifo", ["-m", "600", join(folder, "pipe")]);
    expect(refusal(() => readKeyPair(join(folder, "folder")))).toContain("a folder");
    expect(refusal(() => readKeyPair(join(folder, "pipe")))).toContain("a pipe");
    expect(refusal(() => readKeyPair(join(folder, "none")))).toContain("ENOENT");
  });

  it.each<[string, string, string]>([
    ["nothing", "", "got no JSON"],
    ["a broken end", JSON.stringify(numbers).slice(0, -1), "got no JSON"],
    ["no JSON", `${JSON.stringify(numbers)} x`, "got no JSON"],
    ["a text", JSON.stringify("217,217,217"), "JSON of another kind"],
    ["an object", JSON.stringify({ secret: numbers }), "JSON of another kind"],
    ["too few", JSON.stringify(numbers.slice(0, 63)), "got 63 elements"],
    ["too many", JSON.stringify([...numbers, 217]), "got 65 elements"],
    ["the seed alone", JSON.stringify(numbers.slice(0, 32)), "got 32 elements"],
    ["no number", JSON.stringify(["217", ...numbers.slice(1)]), "an invalid element"],
    ["too large a number", JSON.stringify([256, ...numbers.slice(1)]), "an invalid element"],
    ["a fraction", JSON.stringify([0.5, ...numbers.slice(1)]), "an invalid element"],
    ["a negative number", JSON.stringify([-1, ...numbers.slice(1)]), "an invalid element"],
    ["another public key", JSON.stringify([...numbers.slice(0, 63), 1]), "public key"],
    [
      "halves the other way round",
      JSON.stringify([...numbers.slice(32), ...numbers.slice(0, 32)]),
      "public key",
    ],
    ["no end", "1".repeat(5000), "at most 4096 bytes"],
  ])("with %s are refused, and nothing of them is said", (_, content, message) => {
    const path = fileOf(content);
    const text = refusal(() => readKeyPair(path));
    expect(text).toContain(message);
    expect(text).not.toContain("217");
    expect(text).not.toContain("1111");
  });

  it("with any content are read or rejected, and never quoted", () => {
    const path = fileOf("");
    const secret = fc.array(fc.integer({ min: 100, max: 255 }), { minLength: 8, maxLength: 70 });
    fc.assert(
      fc.property(secret, fc.nat(300), fc.constantFrom("", "{", "]", "\0", "﻿"), (all, cut, end) => {
        writeFileSync(path, JSON.stringify(all).slice(0, 10 + cut) + end);
        const text = refusal(() => readKeyPair(path));
        expect(text).not.toContain(JSON.stringify(all).slice(1, 10));
      }),
      { numRuns: 40 },
    );
  });

  it("do not appear when a key pair is printed", () => {
    const read = readKeyPair(fileOf(JSON.stringify(numbers)));
    const keys = nonceKeysOf(read, new Uint8Array(32).fill(217));
    const text = [
      inspect(read, { depth: 10, showHidden: true }),
      inspect(keys, { depth: 10, showHidden: true }),
      JSON.stringify(keys),
      JSON.stringify(read),
    ].join("\n");
    expect(text).not.toContain("217, 217");
    expect(text).not.toContain("217,217");
    expect(text).not.toContain("d9d9");
    expect(text).toContain(read.address);
  });
});

describe("a created key file", () => {
  it("is private to its owner, new, and readable by web3.js", () => {
    const folder = temporaryFolder();
    const path = join(folder, "new.json");
    const mask = process.umask(0);
    const created = makeKeyFile(path);
    process.umask(mask);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const content: number[] = JSON.parse(readFileSync(path, "utf8"));
    expect(Keypair.fromSecretKey(Uint8Array.from(content)).publicKey.toBase58()).toBe(
      created.address,
    );
    expect(readKeyPair(path).address).toBe(created.address);
    expect(readdirSync(folder)).toEqual(["new.json"]);
    expect(makeKeyFile(join(folder, "other.json")).address).not.toBe(created.address);
  });

  it("never replaces an existing file", () => {
    const path = fileOf(JSON.stringify(numbers));
    const text = refusal(() => makeKeyFile(path));
    expect(text).toContain("EEXIST");
    expect(readKeyPair(path).address).toBe(pair.publicKey.toBase58());
    expect(readdirSync(join(path, ".."))).toEqual(["key.json"]);
    const dangling = join(temporaryFolder(), "dangling");
    symlinkSync(join(dangling, "..", "elsewhere"), dangling);
    refusal(() => makeKeyFile(dangling));
    refusal(() => makeKeyFile(join(temporaryFolder(), "none", "key.json")));
  });
});

describe("derived keys of nonce accounts", () => {
  const master = new Uint8Array(32).fill(1);
  const keys = nonceKeysOf(new KeyPair(new Uint8Array(32).fill(2)), master);

  it("never change, because accounts are found by them", () => {
    expect(
      [0, 1, 4_294_967_296].map((i) => [keys.account(i).address, keys.authority(i).address]),
    ).toMatchInlineSnapshot(`
      [
        [
          "8qsPrrkPEcd5rnH7TnJHMupkoZsYhkqBb5GbdLiC4bnc",
          "3EMJqjqaV7PkZUd1ckxeGbCyFqH3M1Cr8abH48omP6VW",
        ],
        [
          "4HdKUCveQkFgmM9SwGKxPzkcYFVh9qgGmmGDhr1gJacU",
          "8RpXREtxawsLZT1zEuxPPRhW7CapTQqznkNM1tn7S75n",
        ],
        [
          "EFyTPvzUZywE1sEDSrCDXxBdFKJ2GepMtwBnSY2Nsqjg",
          "FedAApPPzG6yK4cyZAXQQpMBn5p3tMJTLtanxDp311bY",
        ],
      ]
    `);
  });

  it("are different ones for every index, kind and secret", () => {
    const other = nonceKeysOf(keys.funding, new Uint8Array(32).fill(3));
    const all = [keys, other].flatMap((each) =>
      Array.from({ length: 300 }, (_, i) => [each.account(i).address, each.authority(i).address]),
    );
    expect(new Set(all.flat()).size).toBe(1200);
    expect(keys.authority(299).address).toBe(keys.authority(299).address);
  });

  it("make signatures that other libraries verify", () => {
    const { wire } = advanceNonce({
      payer: keys.funding,
      account: keys.account(5).publicKey,
      authority: keys.authority(5),
      blockhash: keys.account(6).address,
    });
    expect(() => verifySignatures(parseTransaction(wire))).not.toThrow();
  });

  it("are derived from the authority's file, or from the funding key's", () => {
    const funding = fileOf(JSON.stringify(numbers));
    const other = Keypair.fromSeed(new Uint8Array(32).fill(4));
    const authority = fileOf(JSON.stringify([...other.secretKey]));
    const alone = openNonceKeys(funding);
    const both = openNonceKeys(funding, authority);
    expect(alone.funding.address).toBe(both.funding.address);
    const expected = (seed: number) => nonceKeysOf(alone.funding, new Uint8Array(32).fill(seed));
    expect(alone.account(3).address).toBe(expected(217).account(3).address);
    expect(both.account(3).address).toBe(expected(4).account(3).address);
    expect(() => openNonceKeys(funding, join(funding, "none"))).toThrow("cannot be read");
  });
});
