import { expect, it } from "vitest";
import { quote } from "../../src/core/errors.ts";

it("quotes texts without characters that a terminal obeys", () => {
  expect(quote("a\u202eb\u2066\u009b31m\u007f\u2028\u{e0041}")).toBe(
    '"a\\u202eb\\u2066\\u009b31m\\u007f\\u2028\\udb40\\udc41"',
  );
  expect(quote("\u001b[31m\n")).toBe('"\\u001b[31m\\n"');
  expect(quote("größe 😀")).toBe('"größe 😀"');
  expect(quote("x".repeat(100))).toBe(`"${"x".repeat(76)}...`);
});
