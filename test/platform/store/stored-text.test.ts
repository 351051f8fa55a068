import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plainText, storedText } from "../../../src/platform/store/stored-text.ts";

const character = fc.oneof(
  fc.constantFrom("\0", "\u{E000}", "0", "1"),
  fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
);
const text = fc.array(character).map((characters) => characters.join(""));

describe("texts in the database", () => {
  it("contain no NUL and are read back unchanged", () => {
    fc.assert(
      fc.property(text, (plain) => {
        const stored = storedText(plain);
        expect(stored).not.toContain("\0");
        expect(plainText(stored)).toBe(plain);
      }),
    );
  });

  it("are equal if and only if the texts are equal", () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(storedText(one) === storedText(other)).toBe(one === other);
      }),
    );
  });

  it("are the texts themselves, unless they contain NUL or the escape character", () => {
    for (const plain of ["", "ü€😀", "'\"$1 ?"]) expect(storedText(plain)).toBe(plain);
  });
});
