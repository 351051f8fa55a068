// The methods that are passed on to the node, by default and with changes.

import { describe, expect, it } from "vitest";
import { readMethodsIn } from "../../src/app/read-method-list.ts";
import { readMethodNames } from "../../src/gateway/endpoints/read-methods.ts";

describe("readMethodsIn", () => {
  const none = { add: [], remove: [] };

  it("contains by default what wallets call, and not getBlock", () => {
    const names = readMethodsIn(none);
    expect([...names]).toEqual([...readMethodNames]);
    for (const name of [
      "getTokenAccountsByOwner",
      "getSignaturesForAddress",
      "getTransactionCount",
    ])
      expect(names.has(name)).toBe(true);
    expect(names.has("getBlock")).toBe(false);
  });

  it("adds and removes names", () => {
    const changed = readMethodsIn({ add: ["getBlock", "getSlot"], remove: ["getBalance"] });
    expect([changed.has("getBlock"), changed.has("getBalance")]).toEqual([true, false]);
    expect(changed.size).toBe(readMethodNames.length);
  });

  it.each([
    [
      { add: ["getBlock", "getTipAccounts"] },
      'add[1]: "getTipAccounts" is a method of this service; expected another method of the node',
    ],
    [{ add: ["sendTransaction"] }, 'add[0]: "sendTransaction" is a method of this service; '],
    [{ add: ["sendRawThing"] }, 'add[0]: "sendRawThing" sends or subscribes; expected another '],
    [{ add: ["blockSubscribe"] }, 'add[0]: "blockSubscribe" sends or subscribes; expected '],
    [
      { add: ["getSlot"], remove: ["getSlot"] },
      'add[0]: "getSlot" is also in gateway.readMethods.remove; expected another method',
    ],
    [
      { remove: ["getBlok"] },
      'remove[0]: "getBlok" is not passed on by default; expected one of getLatestBlockhash, ',
    ],
  ])("refuses %j", (changes, message) => {
    expect(() => readMethodsIn({ ...none, ...changes })).toThrow(`gateway.readMethods.${message}`);
  });
});
