// Protective options: every option in a call either protects or is refused.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { Json } from "../../../src/core/json-rpc/json-text.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { readProtection, resemblesProtection } from "../../../src/gateway/methods/protection.ts";
import { GatewayRun, inspectorFor, tipAddress } from "../../support/gateway/gateway.ts";
import { openPairs, pairOf, paramsOf } from "../../support/transactions/nonce-pairs.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";

const inspector = inspectorFor([tipAddress]);
/** The minimum fee of sendAlt. */
const fee: Partial<TransactionFacts> = {
  computeUnitPrice: 10_000_000n,
  priorityFeeLamports: 2_000_000n,
};

const open = (): Promise<GatewayRun> =>
  GatewayRun.open(
    {},
    { inspector: { inspect: (wire) => ({ ...inspector.inspect(wire), ...fee }) } },
  );
const openForPairs = async (): Promise<GatewayRun> => (await openPairs()).run;

const one = base64(tipping());
const methods: readonly [string, () => Promise<GatewayRun>, () => unknown][] = [
  ["sendTransaction", open, () => one],
  ["sendBundle", open, () => [one]],
  ["sendBatch", open, () => [one]],
  ["sendAlt", open, () => one],
  ["sendIdeal", openForPairs, () => paramsOf(pairOf())[0]],
];
/** Required by sendAlt; the other methods ignore it. */
const fallback = { enableFallback: true };
/** Positions of options: the second parameter, the third, or an undeclared fourth. */
const placements: readonly ((options: object) => readonly unknown[])[] = [
  (options) => [{ ...fallback, ...options }],
  (options) => [{ ...fallback, encoding: "base64", skipPreflight: true }, options],
  (options) => [{ ...fallback, encoding: "base64", skipPreflight: true }, {}, options],
];
const none = { mevProtect: false, swqosOnly: false, revertProtection: false };
const noBuilders = ["sendBundle", "sendAlt"];

describe.each(methods)("%s", (name, openGateway, transactionsOf) => {
  it.each(["mevProtect", "revertProtection", "swqosOnly"])(
    "honours %s in every place",
    async (option) => {
      const run = await openGateway();
      for (const place of placements) {
        run.submitted.length = 0;
        const params = [transactionsOf(), ...place({ [option]: true })];
        const { body } = await run.call(name, params);
        if (option === "swqosOnly" && noBuilders.includes(name)) {
          expect(body).toMatchObject({ error: { message: expect.stringContaining("swqosOnly") } });
          expect(run.submitted).toEqual([]);
        } else {
          expect(body).toHaveProperty("result");
          expect(run.submitted.length).toBeGreaterThan(0);
          for (const { options } of run.submitted) {
            expect(options).toMatchObject({ ...none, [option]: true });
          }
        }
      }
    },
  );

  it.each(["mev-protect", "revert-protection"])("honours %s in the URL", async (parameter) => {
    const run = await openGateway();
    const params = [transactionsOf(), { ...fallback, skipPreflight: true }];
    await run.call(name, params, `/relay?api-key=good&${parameter}=true`);
    const option = parameter === "mev-protect" ? "mevProtect" : "revertProtection";
    expect(run.submitted.length).toBeGreaterThan(0);
    for (const { options } of run.submitted) expect(options[option]).toBe(true);
  });

  it.each([
    "mev_protect",
    "MEVProtect",
    "frontRunningProtection",
    "swqos-only",
    "revertProtect",
    "mevprotct",
    "validatorAcls",
    "validator_acls",
    "forwardingPolicies",
    "forwarding_policies",
  ])("rejects the unknown option %s by name", async (option) => {
    const run = await openGateway();
    for (const place of placements) {
      const { body } = await run.call(name, [transactionsOf(), ...place({ [option]: true })]);
      const message = expect.stringContaining(
        `unknown option "${option}"; the protective options are`,
      );
      expect(body).toMatchObject({ error: { code: -32602, message } });
    }
    expect(run.submitted).toEqual([]);
  });

  it("rejects an unknown URI parameter that resembles a protective one", async () => {
    const run = await openGateway();
    const params = [transactionsOf(), { ...fallback, skipPreflight: true }];
    const answer = await run.call(name, params, "/relay?api-key=good&mevProtect=true");
    const message = expect.stringContaining('unknown URI parameter "mevProtect"');
    expect(answer.body).toMatchObject({ error: { code: -32602, message } });
    expect(run.submitted).toEqual([]);
  });

  it.each([
    [
      "/api/v1/transactions",
      "bundleOnly=true&mevProtect=true",
      'unknown URI parameter "mevProtect"',
    ],
    ["/api/v1/transactions", "bundleOnly=true&mev_protect=true", "unknown URI parameter"],
    [
      "/relay",
      `${"x=1&".repeat(64)}mev-protect=true`,
      "URI parameters: expected at most 64, got more",
    ],
  ])("rejects %s?%s", async (path, query, text) => {
    const run = await openGateway();
    const params = [transactionsOf(), { ...fallback, skipPreflight: true }];
    const { body } = await run.call(name, params, `${path}?api-key=good&${query}`);
    const message = expect.stringContaining(text);
    expect(body).toMatchObject({ error: { code: -32602, message } });
    expect(run.submitted).toEqual([]);
  });

  it.each([
    ["mev-protect=false&mev-protect=true", '"false", "true"'],
    ["mev-protect=true&mev-protect=false", '"true", "false"'],
    ["mev-protect=true&mev-protect=true", '"true", "true"'],
    ["mev-protect=&mev-protect=true", '"", "true"'],
  ])("rejects a repeated parameter of the URL: %s", async (query, got) => {
    const run = await openGateway();
    const params = [transactionsOf(), { ...fallback, skipPreflight: true }];
    const { body } = await run.call(name, params, `/relay?api-key=good&${query}`);
    const message = `value_invalid: URI parameter mev-protect: expected one value, got ${got}`;
    expect(body).toMatchObject({ error: { code: -32602, message } });
    expect(run.submitted).toEqual([]);
  });

  it("rejects a value that is not a boolean in any position", async () => {
    const run = await openGateway();
    for (const place of placements) {
      const { body } = await run.call(name, [transactionsOf(), ...place({ mevProtect: "yes" })]);
      const message = expect.stringMatching(
        /params\[[123]\]\.mevProtect: invalid value "yes"; expected true or false/,
      );
      expect(body).toMatchObject({ error: { code: -32602, message } });
    }
    expect(run.submitted).toEqual([]);
  });
});

describe("the raw paths", () => {
  it("apply the protective parameters of the URL and reject similar names", async () => {
    const run = await open();
    const post = (query: string) =>
      fetch(run.url(`/relayb?api-key=good&method=sendTransaction&${query}`), {
        method: "POST",
        body: Uint8Array.from(tipping()),
      });
    expect(await (await post("revert-protection=true&mev-protect=true")).json()).toHaveProperty(
      "result",
    );
    expect(run.submitted[0]?.options).toMatchObject({ mevProtect: true, revertProtection: true });
    expect(await (await post("revertProtection=true")).json()).toHaveProperty("error");
    expect(run.submitted).toHaveLength(1);
  });
});

describe("readProtection", () => {
  const uri = { ...none, bundleOnly: false };

  it("applies the protected choice if places differ, and treats null as absent", () => {
    const given = [{ mevProtect: true }, { mevProtect: false, swqosOnly: null }];
    expect(readProtection(["", ...given], uri)).toEqual({ ...none, mevProtect: true });
    expect(readProtection([""], { ...uri, swqosOnly: true })).toEqual({ ...none, swqosOnly: true });
  });

  it("never ignores an option: it is applied or rejected", () => {
    const option = fc.constantFrom("mevProtect", "swqosOnly", "revertProtection");
    const other = fc.dictionary(fc.string({ maxLength: 12 }), fc.jsonValue({ maxDepth: 1 }));
    fc.assert(
      fc.property(fc.array(other, { maxLength: 3 }), other, option, (before, beside, name) => {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- fast-check's JSON values
        const params = ["AA==", ...before, { ...beside, [name]: true }] as Json[];
        try {
          expect(readProtection(params, uri)[name]).toBe(true);
        } catch (error) {
          if (!(error instanceof ShredwayError)) throw error;
          expect(error.reason).toBe("value_invalid");
        }
      }),
    );
  });

  it("accepts the options of standard clients", () => {
    const stock = [
      ["encoding", "skipPreflight", "preflightCommitment", "maxRetries", "minContextSlot"],
      ["max_retries", "min_context_slot", "commitment", "enableFallback", "innerInstructions"],
      ["replaceRecentBlockhash", "sigVerify", "searchTransactionHistory", "dataSlice", "uuid"],
    ].flat();
    expect(stock.filter(resemblesProtection)).toEqual([]);
  });
});
