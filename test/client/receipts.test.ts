// verifyReceipt: 10,000 mutated receipts are rejected, and so is every other text.

import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { ShredwayCallError, type SigningKeys, verifyReceipt } from "../../src/client/index.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { SigningKey } from "../../src/core/signing-key.ts";
import { verifyByReference } from "../support/signing/ed25519-reference.ts";
import { receiptContent } from "../support/signing/receipt-content.ts";

const keyOf = (name: string) => new SigningKey(createHash("sha256").update(name).digest());
const [key, other] = [keyOf("one"), keyOf("other")];
const content = receiptContent();
const receipt = key.sign("shredway-receipt", JSON.stringify(content));

function jwkOf({ publicKey }: SigningKey) {
  return { kty: "OKP", crv: "Ed25519", x: Buffer.from(publicKey).toString("base64url") };
}

const keys: SigningKeys = { keys: [jwkOf(other), jwkOf(key)] };

async function reasonOf(text: string, set = keys): Promise<string> {
  try {
    await verifyReceipt(text, set);
  } catch (error) {
    if (error instanceof ShredwayCallError) return error.reason;
    throw error;
  }
  return "accepted";
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Another text than `text`: a character replaced, removed, added, two swapped, or a part cut or repeated. */
function mutated(text: string, random: SeededRandom): string {
  const at = (): number => Math.floor(random.share() * text.length);
  for (;;) {
    const [i, j] = [at(), at()];
    const letter = alphabet[Math.floor(random.share() * 64)] ?? "";
    const sign = [".", "=", "+", "/", " ", "\n", "\0", "é"][Math.floor(random.share() * 8)] ?? "";
    const from = Math.min(i, j);
    const to = Math.max(i, j);
    const bits = String.fromCharCode(text.charCodeAt(i) ^ (1 << Math.floor(random.share() * 7)));
    const changed = [
      text.slice(0, i) + letter + text.slice(i + 1),
      text.slice(0, i) + bits + text.slice(i + 1),
      text.slice(0, i) + text.slice(i + 1),
      text.slice(0, i) + letter + text.slice(i),
      text.slice(0, i) + sign + text.slice(i),
      text.slice(0, from) + text.slice(to),
      text.slice(0, to) + text.slice(from),
      text.slice(0, from) +
        (text[to] ?? "") +
        text.slice(from + 1, to) +
        (text[from] ?? "") +
        text.slice(to + 1),
    ][Math.floor(random.share() * 8)];
    if (changed !== undefined && changed !== text) return changed;
  }
}

it("accepts the receipt, with exact fields", async () => {
  expect(await verifyReceipt(receipt, keys)).toEqual({
    ...content,
    slot: 7n,
    transactions: [{ ...content.transactions[0], tipLamports: 10_000n }],
  });
});

it("rejects 10,000 mutated receipts", async () => {
  const random = new SeededRandom(7);
  const accepted: string[] = [];
  for (let i = 0; i < 10_000; i++) {
    const text = mutated(receipt, random);
    if ((await reasonOf(text)) === "accepted") accepted.push(text);
  }
  expect(accepted).toEqual([]);
});

it("rejects each change of each bit of the payload and of the signature", async () => {
  const [header = "", payload = "", signature = ""] = receipt.split(".");
  const reasons = new Set<string>();
  for (const [name, part] of Object.entries({ payload, signature })) {
    const bytes = Buffer.from(part, "base64url");
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const text = changed.toString("base64url");
      const parts = name === "payload" ? [header, text, signature] : [header, payload, text];
      reasons.add(await reasonOf(parts.join(".")));
    }
  }
  expect([...reasons]).toEqual(["statement_invalid"]);
});

it("rejects the other texts of the same signature", async () => {
  const last = alphabet.indexOf(receipt.at(-1) ?? "");
  for (let spare = 1; spare < 16; spare++) {
    const text = `${receipt.slice(0, -1)}${alphabet[(last & 0x30) | ((last + spare) & 15)]}`;
    expect(Buffer.from(text.slice(-86), "base64url")).toEqual(
      Buffer.from(receipt.slice(-86), "base64url"),
    );
    expect(await reasonOf(text)).toBe("statement_invalid");
  }
  // S + L is the same scalar (RFC 8032, 8.4).
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const signature = Buffer.from(receipt.slice(-86), "base64url");
  const s = BigInt(`0x${Buffer.from(signature.subarray(32).toReversed()).toString("hex")}`) + order;
  signature.set(Buffer.from(s.toString(16).padStart(64, "0"), "hex").toReversed(), 32);
  expect(await reasonOf(`${receipt.slice(0, -86)}${signature.toString("base64url")}`)).toBe(
    "statement_invalid",
  );
});

it("rejects statements of another type, headers with further members, and other algorithms", async () => {
  const payload = JSON.stringify(content);
  expect(await reasonOf(key.sign("shredway-tips", payload))).toBe("statement_invalid");
  const [, body] = receipt.split(".");
  for (const header of [
    { alg: "none", kid: key.kid, typ: "shredway-receipt" },
    { alg: "HS256", kid: key.kid, typ: "shredway-receipt" },
    { alg: "EdDSA", typ: "shredway-receipt" },
    { alg: "EdDSA", kid: key.kid, typ: "shredway-receipt", crit: ["b64"], b64: false },
    { alg: "EdDSA", kid: key.kid, typ: "shredway-receipt", jwk: jwkOf(other) },
  ]) {
    const head = Buffer.from(JSON.stringify(header)).toString("base64url");
    expect(await reasonOf(`${head}.${body}.${"A".repeat(86)}`)).toBe("statement_invalid");
    expect(await reasonOf(`${head}.${body}.`)).toBe("statement_invalid");
  }
  const detached = key.signDetached("shredway-receipt", payload);
  expect(await reasonOf(detached)).toBe("statement_invalid");
});

it("finds the key by its thumbprint only", async () => {
  expect(await reasonOf(receipt, { keys: [] })).toBe("signing_key_unknown");
  expect(await reasonOf(receipt, { keys: [jwkOf(other)] })).toBe("signing_key_unknown");
  // A set that gives another key the name of the signing key.
  const lying = { ...jwkOf(other), kid: key.kid };
  expect(await reasonOf(receipt, { keys: [lying] })).toBe("signing_key_unknown");
  const unusable = [
    { kty: "EC", crv: "P-256", x: "AA" },
    { kty: "OKP", crv: "Ed25519", x: "AA" },
  ];
  expect(await reasonOf(receipt, { keys: [...unusable, jwkOf(key)] })).toBe("accepted");
});

it("rejects validly signed texts without the fields of a receipt", async () => {
  for (const payload of ["", "[]", "null", "{}", '{"statement":"other"}', "\u{fffd}{"]) {
    const reason = await reasonOf(key.sign("shredway-receipt", payload));
    expect(["statement_invalid", "answer_invalid"]).toContain(reason);
  }
});

it("agrees with the formulas of RFC 8032", async () => {
  const [header = "", payload = "", signature = ""] = receipt.split(".");
  const bytes = Buffer.from(signature, "base64url");
  const signed = Buffer.from(`${header}.${payload}`);
  expect(verifyByReference(key.publicKey, signed, bytes)).toBe(true);
  expect(verifyByReference(other.publicKey, signed, bytes)).toBe(false);
});
