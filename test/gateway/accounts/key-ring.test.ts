import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatAddress, parseAddress } from "../../../src/core/addresses/addresses.ts";
import { newApiKey } from "../../../src/gateway/accounts/api-keys.ts";
import { KeyRing } from "../../../src/gateway/accounts/key-ring.ts";
import type { ApiKey } from "../../../src/gateway/accounts/types.ts";

const settings = {
  accountId: "a_1",
  accountName: "a",
  label: "",
  scopes: ["submit"] as const,
  requestsPerSecond: null,
  burst: null,
  allowedRanges: [],
};

function createdKey(number: number, changes: Partial<ApiKey> = {}): { text: string; key: ApiKey } {
  const { text, key } = newApiKey(settings, new Uint8Array(38).fill(number), 1n);
  return { text, key: { ...key, ...changes } };
}

const time = fc.option(fc.bigInt(0n, 20n), { nil: null });

describe("find", () => {
  it("finds the same key as a search through all keys", () => {
    const changes = fc.array(fc.record({ expiresNs: time, revokedNs: time }), { maxLength: 9 });
    fc.assert(
      fc.property(changes, changes, fc.bigInt(0n, 20n), (before, after, nowNs) => {
        const ring = new KeyRing();
        ring.replace(before.map((change, i) => createdKey(i + 100, change).key));
        const held = after.map((change, i) => createdKey(i + 95, change));
        ring.replace(held.map(({ key }) => key));
        for (let number = 90; number < 115; number++) {
          const { text } = createdKey(number);
          const model = held.find((one) => one.text === text)?.key;
          const isInForce =
            model?.revokedNs === null && (model.expiresNs === null || model.expiresNs > nowNs);
          expect(ring.find(text, nowNs)).toBe(isInForce ? model : null);
        }
        expect(ring.size).toBe(held.length);
      }),
    );
  });

  it("matches only the whole text", () => {
    const ring = new KeyRing();
    const { text, key } = createdKey(1);
    ring.replace([key]);
    expect(ring.find(text, 5n)).toBe(key);
    const others = ["", text.slice(1), `${text} `, text.toLowerCase(), key.hint, key.id];
    for (const other of [...others, "x".repeat(1e6)]) expect(ring.find(other, 5n)).toBe(null);
    expect(ring.find(Buffer.from(key.hash).toString("latin1"), 5n)).toBe(null);
  });

  it("ignores a key with an invalid hash", () => {
    const ring = new KeyRing();
    ring.replace([createdKey(1, { hash: new Uint8Array(5) }).key, createdKey(2).key]);
    expect(ring.find(createdKey(1).text, 5n)).toBe(null);
    expect(ring.find(createdKey(2).text, 5n)?.id).toBe(createdKey(2).key.id);
  });
});

describe("allows", () => {
  it("agrees with a comparison of the addresses' bits", () => {
    const bits = (bytes: Uint8Array) =>
      [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
    const address = fc.oneof(
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      fc
        .uint8Array({ minLength: 4, maxLength: 4 })
        .map((end) => Uint8Array.of(...new Uint8Array(10), 255, 255, ...end)),
    );
    const flips = fc.option(fc.nat(127), { nil: null });
    fc.assert(
      fc.property(address, fc.nat(128), flips, (base, prefix, flip) => {
        const isIpv4 = formatAddress(base).includes(".");
        const prefixBits = isIpv4 ? Math.max(96, prefix) : prefix;
        const first = base.map(
          (byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, prefixBits - i * 8))),
        );
        const text = `${formatAddress(first)}/${isIpv4 && prefixBits >= 96 ? prefixBits - 96 : prefixBits}`;
        // A prefix of IPv6 may produce a mapped IPv4 address, which is not a range of this kind.
        fc.pre(isIpv4 || !formatAddress(first).includes("."));
        const ring = new KeyRing();
        const { key } = createdKey(1, { allowedRanges: ["203.0.113.77", text] });
        ring.replace([key]);
        const before = base.slice();
        if (flip !== null) before[flip >> 3] = (before[flip >> 3] ?? 0) ^ (0x80 >> (flip & 7));
        const isSame = bits(before).slice(0, prefixBits) === bits(first).slice(0, prefixBits);
        const isSingle = formatAddress(before) === "203.0.113.77";
        expect(ring.allows(key, before)).toBe(isSame || isSingle);
      }),
    );
  });

  it("allows all addresses without ranges, and none with unreadable ranges", () => {
    const ring = new KeyRing();
    const open = createdKey(1).key;
    const broken = createdKey(2, { allowedRanges: ["10.0.0.0/8", "everywhere"] }).key;
    ring.replace([open, broken]);
    const address = parseAddress("10.1.2.3");
    expect(ring.allows(open, address)).toBe(true);
    expect(ring.allows(broken, address)).toBe(false);
    expect(ring.allows(createdKey(3).key, address)).toBe(false); // not on the ring
  });
});
