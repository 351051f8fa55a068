import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { readCallJson, readJson, writeJson } from "../../../src/core/json-rpc/json-text.ts";

function refusalOf(text: string): string {
  try {
    readJson(text);
  } catch (thrown) {
    if (thrown instanceof ShredwayError && thrown.reason === "json_invalid") return thrown.message;
    throw thrown;
  }
  throw new Error(`expected an error for ${text}`);
}

/** Whole numbers beyond 2^53, and numbers out of range, are intentionally read differently. */
const isReadDifferently = /[0-9]{16}|[eE]\+?[0-9]{3}/;

describe("readJson", () => {
  it("reads like JSON.parse", () => {
    const json = fc.json({ maxDepth: 6 });
    fc.assert(
      fc.property(json, (text) => {
        fc.pre(!isReadDifferently.test(text));
        expect(writeJson(readJson(text))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it("rejects exactly the texts that JSON.parse rejects", () => {
    const mutated = fc
      .tuple(
        fc.json({ maxDepth: 3 }),
        fc.nat(),
        fc.nat(3),
        fc.constantFrom(...Array.from('{}[]",:\\01e-.tn \t\u0001')),
      )
      .map(([text, at, removed, added]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + added + text.slice(place + removed);
      });
    fc.assert(
      fc.property(mutated, (text) => {
        fc.pre(!isReadDifferently.test(text));
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          expect(refusalOf(text)).toMatch(/^JSON: expected .* got /s);
          return;
        }
        expect(writeJson(readJson(text))).toBe(JSON.stringify(expected));
      }),
      { numRuns: 1000 },
    );
  });

  it("preserves every 64-bit integer, both ways", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }), (value) => {
        const read = readJson(value.toString());
        expect(typeof read).toBe(
          value >= -(2n ** 53n) + 1n && value < 2n ** 53n ? "number" : "bigint",
        );
        expect(read).toEqual(typeof read === "number" ? Number(value) : value);
        expect(writeJson(read)).toBe(value.toString());
      }),
    );
  });

  it("limits nesting and numbers", () => {
    expect(readJson(`${"[".repeat(16)}1${"]".repeat(16)}`)).toBeDefined();
    expect(refusalOf(`${"[".repeat(17)}1${"]".repeat(17)}`)).toContain("at most 16 levels");
    expect(refusalOf("[".repeat(200_000))).toContain("at most 16 levels");
    expect(refusalOf('{"a":'.repeat(50_000))).toContain("at most 16 levels");
    expect(refusalOf("9".repeat(200_000))).toContain("expected a number");
    expect(refusalOf("1e999")).toContain("expected a number");
    expect(readJson("9".repeat(80))).toBe(BigInt("9".repeat(80)));
    expect(readJson("9".repeat(81))).toBe(1e81);
    expect(refusalOf(`"${"\\\\".repeat(100_000)}`)).toContain("the end of the string");
  });

  it("treats __proto__ as an ordinary key", () => {
    const value = readJson('{"__proto__":{"polluted":true},"constructor":1}');
    expect(Object.keys(value ?? {})).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(value)).toBeNull();
    expect("polluted" in {}).toBe(false);
  });
});

describe("writeJson", () => {
  it("omits absent fields and writes bigints as integers", () => {
    const value = { a: 2n ** 64n - 1n, b: undefined, c: [null, true, "\u2028"], d: { e: 1.5 } };
    expect(writeJson(value)).toBe(
      '{"a":18446744073709551615,"c":[null,true,"\u2028"],"d":{"e":1.5}}',
    );
  });
});

describe("readCallJson", () => {
  function outcome(read: (text: string, depthMax?: number) => unknown, text: string): string {
    try {
      return writeJson(read(text, 4));
    } catch (thrown) {
      return String(thrown);
    }
  }

  it("reads like readJson, with the same errors", () => {
    const texts = fc.oneof(
      fc.json({ maxDepth: 6 }),
      fc.json({ maxDepth: 2 }).map((text) => text.slice(1)),
      fc.string(),
      fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }).map(String),
      fc.constantFrom("1e999", "[1E+400]", "12345678901234e295", "-0", "1e5", "[[[[[1]]]]]"),
      fc.constantFrom('{"__proto__":1}', "9007199254740993", "01", "[1,]", "\ufeff1"),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(outcome(readCallJson, text)).toBe(outcome(readJson, text));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("readCallJson", () => {
  it("refuses a repeated member, at any depth and however it is written", () => {
    const message = (text: string): string => {
      try {
        readCallJson(text);
      } catch (thrown) {
        if (thrown instanceof ShredwayError) return `${thrown.reason}: ${thrown.message}`;
        throw thrown;
      }
      throw new Error(`expected an error for ${text}`);
    };
    expect(message('{"id":1,"id":2}')).toBe(
      'request_invalid: JSON: expected each member of an object once, got "id" again at 8',
    );
    for (const text of [
      '[{"a" : {"mevProtect":true, "mevProtect" : false}}]',
      '{"a":1,"b":"x:y","\\u0061":2}',
      '{"__proto__":1,"__proto__":2}',
      '{"id":12345678901234567,"id":2}',
    ]) {
      expect(message(text)).toContain("request_invalid: JSON: expected each member");
      expect(() => readJson(text)).not.toThrow();
    }
    const noRepetition = '[{"a":{"a":1},"b":":::"},{"a":"\\":","toString":1,"b":[{"a":1}]}]';
    expect(writeJson(readCallJson(noRepetition))).toBe(noRepetition);
  });

  it("keeps the text of an id that is a number, in every call", () => {
    const numbers = ["1e2", "-0", "-1.50", "0.10", "1E+2", "9".repeat(90), "1e300", "7", "-7"];
    for (const id of numbers) {
      expect(writeJson(readCallJson(`{"id":${id}}`))).toBe(`{"id":${id}}`);
      expect(writeJson(readCallJson(` [{"a":[1], "id" : ${id} }]`))).toBe(`[{"a":[1],"id":${id}}]`);
    }
    for (const name of ["\\u0069d", "i\\u0064", "\\u0069\\u0064"]) {
      expect(writeJson(readCallJson(`{"${name}":1e2}`))).toBe('{"id":1e2}');
    }
    const isNotOfTheCall = '{"params":[{"id":1e2}]}';
    expect(readCallJson(isNotOfTheCall)).toEqual({ params: [{ id: 100 }] });
  });

  it("limits the number of values of a hostile text", () => {
    const bomb = `[${"{},".repeat(80_000)}{}]`;
    expect(() => readCallJson(bomb, 8)).toThrow(/expected at most 8192 values, got more at \d+/);
    const honest = JSON.stringify(Array.from({ length: 25 }, () => Array(256).fill("s")));
    expect(readCallJson(honest, 8)).toEqual(JSON.parse(honest));
  });
});
