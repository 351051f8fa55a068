// JSON of the client: exact integers, unchanged strings.

import fc from "fast-check";
import { expect, it } from "vitest";
import { readJson, writeJson } from "../../src/client/json.ts";

const u64 = fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n });
const exact = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    u64.map((each) => (Number.isSafeInteger(Number(each)) ? Number(each) : each)),
    fc
      .double({ noNaN: true, noDefaultInfinity: true })
      // Whole numbers beyond 2^53 are written as digits, and digits are read as an exact bigint.
      .filter((each) => !Number.isInteger(each) || Number.isSafeInteger(each))
      .map((each) => (Object.is(each, -0) ? 0 : each)),
    fc.string({ unit: "binary" }),
    fc.constantFrom(
      null,
      true,
      false,
      "i123",
      "s",
      'a"1234567890123456789":\\',
      "12345678901234567",
    ),
    fc.array(tie("value")),
    fc.dictionary(
      fc.string().filter((key) => key !== "__proto__"),
      tie("value"),
    ),
  ),
})).value;

it("reads back its own output", () => {
  fc.assert(
    fc.property(exact, (value) => {
      expect(readJson(writeJson(value))).toEqual(value);
    }),
  );
});

it("reads integers of other writers, with spaces and after keys that look like numbers", () => {
  const text =
    ' { "9007199254740993" : 9007199254740993 , "a":[18446744073709551615,1.5e300, -9007199254740993] }';
  expect(readJson(text)).toEqual({
    "9007199254740993": 9_007_199_254_740_993n,
    a: [18_446_744_073_709_551_615n, 1.5e300, -9_007_199_254_740_993n],
  });
});

it("rejects invalid JSON, with and without long integers", () => {
  for (const text of [
    "",
    "{",
    "[12345678901234567890",
    '"1234567890123456',
    "<html>",
    "12345678901234567890x",
  ]) {
    expect(() => readJson(text)).toThrow(SyntaxError);
  }
});
