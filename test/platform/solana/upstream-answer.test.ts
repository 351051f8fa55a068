// Messages of nodes: results stay unchanged, with any other content in the text.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { readNodeMessage } from "../../../src/platform/solana/upstream-answer.ts";

const same = (text: string): string => text;
const read = (text: string) => readNodeMessage(text, same);

function resultOf(text: string): string {
  const { answer } = read(text);
  if (!answer || !("result" in answer)) throw new Error(`expected a result in ${text}`);
  return answer.result.text;
}

function errorOf(text: string) {
  const { answer } = read(text);
  if (!answer || !("error" in answer)) throw new Error(`expected an error in ${text}`);
  return answer.error;
}

describe("readNodeMessage", () => {
  it("finds the result in any order and layout, and returns its text", () => {
    const field = fc.tuple(fc.constantFrom("jsonrpc", "extra", "x"), fc.jsonValue());
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.array(field),
        fc.boolean(),
        fc.constantFrom(0, 1, 4),
        (result, others, isFirst, indent) => {
          const own: [string, unknown][] = [
            ["result", result],
            ["id", 7],
          ];
          const all = isFirst ? [...own, ...others] : [...others, ...own];
          const text = JSON.stringify(Object.fromEntries(all), null, indent);
          expect(resultOf(text)).toBe(
            JSON.stringify(result, null, indent).replaceAll("\n", `\n${" ".repeat(indent)}`),
          );
          expect(read(text).id).toBe("7");
        },
      ),
    );
  });

  it("keeps every digit", () => {
    expect(resultOf('{"id":1,"result":{"rentEpoch":18446744073709551615,"uiAmount":1.0}}')).toBe(
      '{"rentEpoch":18446744073709551615,"uiAmount":1.0}',
    );
  });

  it("reads escaped names and uses the last of two, as JSON.parse does", () => {
    expect(resultOf('{"re\\u0073ult":5,"id":1}')).toBe("5");
    expect(resultOf('{"result":[1,{"result":2}],"id":1,"result":"}"}')).toBe('"}"');
  });

  it("rejects every other text with rpc_failed", () => {
    const deep = `{"id":1,"result":${"[".repeat(100)}${"]".repeat(100)}}`;
    const texts = ["", "null", "[]", "7", "{", '{"result":1}}', "<html>", "\ufffd", deep];
    for (const text of texts) expect(() => read(text), text).toThrow(ShredwayError);
    fc.assert(
      fc.property(fc.string({ maxLength: 50 }), (text) => {
        try {
          read(text);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(ShredwayError);
        }
      }),
    );
  });

  it("forwards errors with codes that clients know, and wraps all others", () => {
    const data = '{"err":"BlockhashNotFound","logs":[],"unitsConsumed":18446744073709551615}';
    expect(errorOf(`{"error":{"code":-32002,"message":"failed","data":${data}},"id":1}`)).toEqual({
      code: -32002,
      message: "failed",
      data: { err: "BlockhashNotFound", logs: [], unitsConsumed: 18446744073709551615n },
    });
    expect(errorOf('{"error":{"code":-32429,"message":"slow down"},"id":1}')).toEqual({
      code: -32603,
      message: "slow down",
      data: { reason: "rpc_failed", error: { code: -32429, message: "slow down" } },
    });
    expect(errorOf('{"error":{},"id":1}').code).toBe(-32603);
    expect(() => read('{"error":"no","id":1}')).toThrow(ShredwayError);
  });

  it("masks secrets in errors", () => {
    const mask = (text: string): string => text.replaceAll("secret", "[masked]");
    const text = '{"error":{"code":-32603,"message":"a secret","data":{"at":["secret"]}},"id":1}';
    const { answer } = readNodeMessage(text, mask);
    expect(answer).toEqual({
      error: { code: -32603, message: "a [masked]", data: { at: ["[masked]"] } },
    });
  });
});
