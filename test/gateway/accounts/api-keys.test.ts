import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  checkAccountName,
  checkLabel,
  checkLimits,
  checkRanges,
  hashKeyText,
  keyRandomBytes,
  keyState,
  newApiKey,
  parseScopes,
} from "../../../src/gateway/accounts/api-keys.ts";

const settings = {
  accountId: "a_1",
  accountName: "a",
  label: "",
  scopes: ["submit"] as const,
  requestsPerSecond: null,
  burst: null,
  allowedRanges: [],
};

describe("newApiKey", () => {
  it("returns the text and stores only its hash", () => {
    const random = fc.uint8Array({ minLength: keyRandomBytes, maxLength: keyRandomBytes });
    fc.assert(
      fc.property(random, (bytes) => {
        const { text, key } = newApiKey(settings, bytes, 7n);
        expect(text).toMatch(/^sw_[1-9A-HJ-NP-Za-km-z]{32,44}$/);
        expect(key.id).toMatch(/^k_[0-9a-f]{12}$/);
        expect(Buffer.from(key.hash)).toEqual(createHash("sha256").update(text).digest());
        expect(text.startsWith(key.hint)).toBe(true);
        expect(key.hint.length).toBe(7);
        expect(key).toMatchObject({ createdNs: 7n, expiresNs: null, revokedNs: null });
      }),
    );
  });

  it("copies only the requested settings", () => {
    const old = newApiKey(settings, new Uint8Array(38).fill(1), 1n).key;
    const expired = { ...old, expiresNs: 5n, revokedNs: 6n };
    const { key } = newApiKey(expired, new Uint8Array(38).fill(2), 9n);
    expect(key).toMatchObject({
      accountId: "a_1",
      createdNs: 9n,
      expiresNs: null,
      revokedNs: null,
    });
    expect(key.id).not.toBe(old.id);
    expect(key.hash).not.toEqual(old.hash);
  });

  it("requires all random bytes", () => {
    expect(() => newApiKey(settings, new Uint8Array(32), 1n)).toThrow("expected 38");
  });

  it("hashes any text as UTF-8", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(hashKeyText(text)).toEqual(createHash("sha256").update(text).digest());
      }),
    );
  });
});

describe("keyState", () => {
  it.each([
    [null, null, "in force"],
    [11n, null, "in force"],
    [10n, null, "expired"],
    [null, 1n, "revoked"],
    [11n, 99n, "revoked"],
  ])("expires %s, revoked %s, at 10: %s", (expiresNs, revokedNs, state) => {
    expect(keyState({ expiresNs, revokedNs }, 10n)).toBe(state);
  });
});

describe("the checks of settings", () => {
  it("accept values in range", () => {
    expect(checkAccountName("Traders & Co. ü")).toBe("Traders & Co. ü");
    expect(checkLabel("")).toBe("");
    expect(parseScopes("batch, submit,batch")).toEqual(["submit", "batch"]);
    expect(checkLimits(1, null)).toEqual({ requestsPerSecond: 1, burst: null });
    expect(checkRanges([" 10.0.0.0/8", "192.0.2.1", "2001:DB8::/32", "10.0.0.0/8"])).toEqual([
      "10.0.0.0/8",
      "192.0.2.1",
      "2001:db8::/32",
    ]);
  });

  it.each([
    [() => checkAccountName(""), 'account: invalid value ""; expected a name of 1 to 64'],
    [() => checkAccountName("a\nb"), "on one line"],
    [() => checkAccountName(" a"), "on one line"],
    [() => checkAccountName("a\u202Eb"), "on one line"],
    [() => checkAccountName("a".repeat(65)), "1 to 64 characters"],
    [() => checkLabel("x".repeat(101)), "at most 100"],
    [() => parseScopes(""), "a comma-separated list of submit, batch, read"],
    [() => parseScopes("submit,admin"), '"admin"'],
    [
      () => checkLimits(0, null),
      "requests per second: invalid value 0; expected a whole number from 1",
    ],
    [() => checkLimits(1.5, null), "invalid value 1.5"],
    [() => checkLimits(null, 1e9), "burst: invalid value 1000000000; expected"],
    [() => checkRanges(["10.0.0.1/8"]), "the first address of the range, 10.0.0.0/8"],
    [
      () => checkRanges(["example.com"]),
      'allowed ranges: invalid value "example.com"; expected an IP address',
    ],
    [() => checkRanges(Array.from({ length: 65 }, (_, i) => `10.0.0.${i}`)), "at most 64"],
  ])("%s is rejected", (check, message) => {
    expect(check).toThrow(message);
    expect(check).toThrow(expect.objectContaining({ reason: "value_invalid" }));
  });
});
