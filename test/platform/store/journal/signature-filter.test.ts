import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { SignatureFilter } from "../../../../src/platform/store/journal/signature-filter.ts";

function signatures(count: number): string[] {
  return Array.from({ length: count }, () => randomBytes(64).toString("base64url"));
}

describe("signature filter", () => {
  it("has every signature that was added, also after it grew", () => {
    const filter = new SignatureFilter(256);
    const added = signatures(3000);
    for (const signature of added) filter.add(signature);
    expect(added.filter((signature) => !filter.mayHave(signature))).toEqual([]);
    expect(filter.count).toBe(3000);
  });

  it("rarely has others", () => {
    const filter = new SignatureFilter(16_384);
    for (const signature of signatures(16_384)) filter.add(signature);
    const wrong = signatures(20_000).filter((signature) => filter.mayHave(signature));
    expect(wrong.length).toBeLessThan(100); // expected: 20
  });

  it("is empty at first", () => {
    expect(signatures(1000).filter((one) => new SignatureFilter(256).mayHave(one))).toEqual([]);
  });
});
