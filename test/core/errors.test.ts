import { expect, it } from "vitest";
import { messageOf, quote } from "../../src/core/errors.ts";
import { refusedHost } from "../support/network/refused-host.ts";

it("says what happened at each address of a host", async () => {
  const { error, text } = await refusedHost();
  expect(messageOf(error)).toBe(text);
});

it("quotes texts without characters that a terminal obeys", () => {
  expect(quote("a\u202eb\u2066\u009b31m\u007f\u2028\u{e0041}")).toBe(
    '"a\\u202eb\\u2066\\u009b31m\\u007f\\u2028\\udb40\\udc41"',
  );
  expect(quote("\u001b[31m\n")).toBe('"\\u001b[31m\\n"');
  expect(quote("größe 😀")).toBe('"größe 😀"');
  expect(quote("x".repeat(100))).toBe(`"${"x".repeat(76)}...`);
});
