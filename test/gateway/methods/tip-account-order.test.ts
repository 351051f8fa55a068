// The order of getTipAccounts over real HTTP.

import { describe, expect, it } from "vitest";
import { GatewayRun, otherTipAddress, tipAddress } from "../../support/gateway/gateway.ts";

describe("the order of tip addresses", () => {
  it("getTipAccounts orders by contention on request; equal addresses rotate", async () => {
    const asked: (readonly string[])[] = [];
    const locks = new Map([
      [tipAddress, 5],
      [otherTipAddress, 3],
    ]);
    const locksOf = (addresses: readonly string[], all: readonly string[]) => {
      asked.push(all);
      return addresses.map((address) => locks.get(address) ?? 0);
    };
    const run = await GatewayRun.open({}, { writeLocks: () => ({ locksOf }) });
    const params = [{ orderBy: "contention" }];
    const first = async () => Object((await run.call("getTipAccounts", params)).body).result;
    for (let i = 0; i < 4; i++) expect(await first()).toEqual([otherTipAddress, tipAddress]);
    expect(new Set(asked[0])).toEqual(new Set([tipAddress, otherTipAddress]));
    locks.set(otherTipAddress, 5);
    const rotated = [await first(), await first()];
    expect(new Set(rotated.map(String)).size).toBe(2);
    const other = await run.call("getTipAccounts", [{ region: "there", orderBy: "contention" }]);
    expect(other).toMatchObject({ body: { result: [otherTipAddress] } });
    for (const [given, message] of [
      [{ orderBy: "price" }, 'invalid value "price"; expected one of rotation, contention'],
      [{ orderBy: "contention", region: "elsewhere" }, 'unknown region "elsewhere"'],
    ] as const) {
      expect(await run.call("getTipAccounts", [given])).toMatchObject({
        body: { error: { code: -32602, message: expect.stringContaining(message) } },
      });
    }
  });

  it("getTipAccounts refuses the order that it cannot know, instead of another one", async () => {
    const run = await GatewayRun.open();
    expect(await run.call("getTipAccounts", [{ orderBy: "contention" }])).toMatchObject({
      body: {
        error: {
          code: -32005,
          message: expect.stringContaining("needs a relay that decodes transactions"),
          data: { reason: "contention_unknown" },
        },
      },
    });
    expect(await run.call("getTipAccounts", [{ orderBy: "rotation" }])).toMatchObject({
      body: { result: expect.arrayContaining([tipAddress]) },
    });
  });
});
