import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeBatch, encodeBatch, TextNumbers } from "../../../src/platform/store/batch.ts";

const value = fc.oneof(
  fc.string(),
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
  fc.uint8Array({ maxLength: 40 }),
  fc.constant(null),
);
const statement = fc.record({
  sql: fc.constantFrom("a", "b", "c", "d"),
  params: fc.array(value, { maxLength: 6 }),
  mustChange: fc.boolean(),
});
const item = fc.record({ isRead: fc.boolean(), statements: fc.array(statement, { maxLength: 4 }) });

describe("a batch", () => {
  it("arrives unchanged, whatever was sent before", () => {
    fc.assert(
      fc.property(fc.array(fc.array(item, { maxLength: 5 }), { maxLength: 4 }), (batches) => {
        const texts = new TextNumbers();
        const known: string[] = [];
        for (const items of batches) {
          const batch = structuredClone(encodeBatch(items, texts, true));
          known.push(...batch.texts);
          const decoded = decodeBatch(batch).map(({ isRead, statements }) => ({
            isRead,
            statements: statements.map(({ text, mustChange, params }) => ({
              sql: known[text],
              params: params.map((param) => (param instanceof Uint8Array ? [...param] : param)),
              mustChange,
            })),
          }));
          const plain = items.map(({ isRead, statements }) => ({
            isRead,
            statements: statements.map(({ sql, params, mustChange }) => ({
              sql,
              params: params.map((param) => (param instanceof Uint8Array ? [...param] : param)),
              mustChange,
            })),
          }));
          expect(decoded).toEqual(plain);
          expect(new Set(known).size).toBe(known.length);
        }
      }),
    );
  });

  it("contains the bytes of a view, not its buffer", () => {
    const large = new Uint8Array(100_000).fill(7);
    const items = [{ isRead: false, statements: [{ sql: "a", params: [large.subarray(5, 8)] }] }];
    expect(encodeBatch(items, new TextNumbers(), false).bytes.buffer.byteLength).toBe(3);
  });
});
