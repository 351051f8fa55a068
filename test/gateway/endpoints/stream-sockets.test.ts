// Decoded streams over real WebSockets, with the client ws: both dialects, keys, errors, limits and ends.

import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import { apiKey, GatewayRun } from "../../support/gateway/gateway.ts";
import { hasUws } from "../../support/gateway/has-uws.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  accountOf,
  batchOf,
  type MadeTransaction,
  markerOf,
  slotOf,
  transactionOf,
  v0TransactionOf,
  voteProgram,
} from "../../support/streams/stream-relay.ts";
import {
  connectTo,
  inForce,
  StreamSocket,
  streamKey,
  streamSockets,
} from "../../support/streams/stream-sockets.ts";

const text = (bytes: Uint8Array) => base58.encode(bytes);
const signatureOf = ({ signature }: MadeTransaction) => text(signature);

describe("shredTransactionSubscribe", () => {
  it.each(["node", "uws"] as const)("sends what matches, engine %s", async (engine) => {
    if (engine === "uws" && !hasUws) return;
    const run = await streamSockets("", engine);
    const client = await connectTo(run);
    const [a, b, c] = [accountOf(1), accountOf(2), accountOf(3)];
    const made = [
      transactionOf([a]),
      transactionOf([a, b]),
      transactionOf([b, c]),
      transactionOf([c, voteProgram]),
    ];
    const [one, both, , vote] = made;
    const filters = {
      everything: [],
      include: [{ accounts: { include: [text(a), text(c)] } }],
      required: [{ vote: null, accounts: { required: [text(a), text(b)] } }],
      exclude: [{ vote: false, accounts: { include: [text(a)], exclude: [text(b)] } }],
      signature: [{ signature: signatureOf(both ?? transactionOf()) }],
      votes: [{ vote: true }],
    };
    const numbers = new Map<string, number>();
    for (const [name, params] of Object.entries(filters)) {
      numbers.set(name, await client.subscribe("shredTransactionSubscribe", params));
    }
    await inForce(run, 6);
    run.send(slotOf(120n, [batchOf(made)]));
    const seen = (name: string) => client.signatures(120, numbers.get(name));
    await until(() => client.signatures(120).length === 4 + 4 + 1 + 1 + 1 + 1, "all transactions");
    expect(seen("everything")).toEqual(made.map(signatureOf));
    expect(seen("include")).toEqual(made.map(signatureOf));
    expect(seen("required")).toEqual([both].flatMap((each) => (each ? signatureOf(each) : [])));
    expect(seen("exclude")).toEqual([one].flatMap((each) => (each ? signatureOf(each) : [])));
    expect(seen("signature")).toEqual(seen("required"));
    expect(seen("votes")).toEqual([vote].flatMap((each) => (each ? signatureOf(each) : [])));
  });

  it("has every member of a notification, for both versions", async () => {
    const run = await streamSockets();
    const client = await connectTo(run);
    const subscription = await client.subscribe("shredTransactionSubscribe", [{}]);
    await inForce(run, 1);
    const legacy = transactionOf([accountOf(1)]);
    const v0 = v0TransactionOf([accountOf(1), accountOf(2)], accountOf(9));
    run.send(slotOf(120n, [batchOf([legacy, v0])]));
    await until(() => client.signatures(120).length === 2, "both transactions");
    const own = client.notifications.filter(({ params }) => params.result.context?.slot === 120);
    const message = (keys: number[], program: number) => ({
      header: {
        numRequiredSignatures: 1,
        numReadonlySignedAccounts: 0,
        numReadonlyUnsignedAccounts: 0,
      },
      accountKeys: keys.map((key) => text(accountOf(key))),
      recentBlockhash: text(new Uint8Array(32).fill(0xab)),
      instructions: [
        { programIdIndex: program, accounts: [0], data: text(Uint8Array.of(7, 8)), stackHeight: 1 },
      ],
    });
    const notification = (value: object) => ({
      jsonrpc: "2.0",
      method: "shredTransactionNotification",
      params: { result: { context: { slot: 120 }, value: { slot: 120, ...value } }, subscription },
    });
    expect(own).toEqual([
      notification({
        signature: signatureOf(legacy),
        transaction: { signatures: [signatureOf(legacy)], message: message([1], 0) },
        version: "legacy",
      }),
      notification({
        signature: signatureOf(v0),
        transaction: {
          signatures: [signatureOf(v0)],
          message: {
            ...message([1, 2], 1),
            addressTableLookups: [
              { accountKey: text(accountOf(9)), writableIndexes: [4], readonlyIndexes: [5] },
            ],
          },
        },
        version: 0,
        loadedAddresses: null,
      }),
    ]);
    expect(client.notifications.every(({ params }) => params.subscription >= 1e9)).toBe(true);
  });

  it("matches and contains the addresses of known lookup tables", async () => {
    const run = await streamSockets();
    const client = await connectTo(run);
    const filter = { accounts: { include: [text(accountOf(44))] } };
    await client.subscribe("shredTransactionSubscribe", [filter]);
    await inForce(run, 1);
    const addresses = Array.from({ length: 6 }, (_, i) => accountOf(40 + i));
    const content = { addresses, extendedSlot: 0n, extensionBegin: 0 };
    run.relay.streams.lookupTables.apply([{ table: accountOf(9), usedSlot: 1n, content }]);
    run.send(slotOf(120n, [batchOf([v0TransactionOf([accountOf(1)], accountOf(9))])]));
    await until(() => client.notifications.length === 1, "the transaction");
    expect(client.notifications[0]?.params.result.value).toMatchObject({
      loadedAddresses: { writable: [text(accountOf(44))], readonly: [text(accountOf(45))] },
    });
  });

  it("ends with its number, and the connection's other subscriptions continue", async () => {
    const run = await streamSockets();
    const client = await connectTo(run);
    const first = await client.subscribe("shredTransactionSubscribe");
    const second = await client.subscribe("shredSubscribe");
    await inForce(run, 2);
    const wrong = await client.ask("shredUnsubscribe", [first]);
    expect(wrong.error?.message).toBe(
      `value_invalid: shredUnsubscribe: expected the number of a subscription on this connection, got ${first}`,
    );
    expect((await client.ask("shredTransactionUnsubscribe", [first])).result).toBe(true);
    await inForce(run, 1);
    run.send(slotOf(120n, [batchOf([transactionOf()])]));
    await until(() => client.signatures(120).length > 0, "the transaction");
    expect(client.signatures(120, second).length).toBe(1);
    expect(client.signatures(120, first)).toEqual([]);
    expect((await client.ask("shredTransactionUnsubscribe", [first])).error?.code).toBe(-32602);
    client.close();
    await inForce(run, 0);
    expect(run.service.status().ends.get("client")).toBe(2);
  });

  it("lists what an update-parent marker withdraws, and repeats no signature within a fork", async () => {
    const run = await streamSockets();
    const client = await connectTo(run);
    await client.subscribe("shredTransactionSubscribe");
    await inForce(run, 1);
    const made = Array.from({ length: 4 }, () => transactionOf());
    const [lost = transactionOf(), moved = transactionOf(), late = transactionOf()] = made;
    const packets = slotOf(121n, [
      batchOf([lost, moved]),
      markerOf(2, 118n),
      batchOf([moved, late]),
    ]);
    run.send(packets);
    const parents = () =>
      client.notifications.filter(({ method }) => method === "shredUpdateParentNotification");
    await until(() => parents().length === 1, "the marker");
    await until(() => client.signatures(121).includes(signatureOf(late)), "the last transaction");
    const withdrawn = parents()[0]?.params.result.value?.withdrawnSignatures ?? [];
    expect(parents()[0]?.params.result).toEqual({
      context: { slot: 121 },
      value: {
        slot: 121,
        parentSlot: 118,
        parentBlockId: text(new Uint8Array(32).fill(6)),
        updateParentFecSetIndex: 32,
        withdrawnSignatures: withdrawn,
      },
    });
    // The signatures that were received and not withdrawn afterwards.
    const standing = new Set<string>();
    for (const { method, params } of client.notifications) {
      const { value, context } = params.result;
      if (context?.slot !== 121 || !value) continue;
      if (method === "shredTransactionNotification") {
        expect(standing.has(value.signature)).toBe(false);
        standing.add(value.signature);
      }
      for (const signature of value.withdrawnSignatures ?? []) standing.delete(signature);
    }
    expect([...standing].toSorted()).toEqual([moved, late].map(signatureOf).toSorted());
    expect(withdrawn).toContain(signatureOf(lost));
  });
});

describe("shredSubscribe", () => {
  it("encodes as its options say", async () => {
    const run = await streamSockets();
    const client = await connectTo(run);
    const options = [
      {},
      { encoding: "base58" },
      { encoding: "json", transactionDetails: "full" },
      { transactionDetails: "accounts" },
      { transactionDetails: "signatures", maxSupportedTransactionVersion: 0 },
    ];
    const numbers: number[] = [];
    for (const each of options) {
      numbers.push(await client.subscribe("shredSubscribe", [{ vote: false }, each]));
    }
    await inForce(run, options.length);
    const made = v0TransactionOf([accountOf(1), accountOf(2)], accountOf(9));
    run.send(slotOf(120n, [batchOf([made])]));
    await until(() => client.signatures(120).length === options.length, "all notifications");
    const results = numbers.map((number) => {
      const found = client.notifications.find(
        ({ params }) => params.subscription === number && params.result.slot === 120,
      );
      expect(found?.method).toBe("shredNotification");
      return found?.params.result;
    });
    const head = { signature: signatureOf(made), slot: 120 };
    const wire = Buffer.from(made.wire);
    expect(results[0]).toEqual({
      ...head,
      transaction: { transaction: [wire.toString("base64"), "base64"], version: 0 },
    });
    expect(results[1]).toEqual({
      ...head,
      transaction: { transaction: [text(wire), "base58"], version: 0 },
    });
    expect(results[2]).toMatchObject({
      transaction: { transaction: { signatures: [head.signature] }, version: 0 },
    });
    expect(results[3]).toMatchObject({
      transaction: {
        transaction: {
          accountKeys: [
            { pubkey: text(accountOf(1)), signer: true, writable: true, source: "transaction" },
            { pubkey: text(accountOf(2)), signer: false, writable: true, source: "transaction" },
          ],
        },
      },
    });
    expect(results[4]).toEqual(head);
  });

  it("filters by its own names", async () => {
    const run = await streamSockets();
    const client = await connectTo(run);
    const [a, b] = [accountOf(1), accountOf(2)];
    await client.subscribe("shredSubscribe", [
      { accountInclude: [text(a), text(a)], accountRequired: [text(a)], accountExclude: [text(b)] },
    ]);
    await inForce(run, 1);
    const made = [transactionOf([a]), transactionOf([a, b]), transactionOf([b])];
    run.send(slotOf(120n, [batchOf(made), batchOf([transactionOf([a])])]));
    await until(() => client.signatures(120).length === 2, "two transactions");
    expect(client.signatures(120)[0]).toBe(made.map(signatureOf)[0]);
  });
});

describe("keys", () => {
  it.each(["node", "uws"] as const)("are taken from each place, engine %s", async (engine) => {
    if (engine === "uws" && !hasUws) return;
    const run = await streamSockets("", engine);
    const places: [string, Record<string, string>][] = [
      [`/stream?api-key=${streamKey}`, {}],
      [`/?api_key=${streamKey}`, {}],
      [`/relay?api-key=${streamKey}`, {}],
      [`/${streamKey}`, {}],
      [`/${streamKey}/`, {}],
      [`/stream/${streamKey}`, {}],
      ["/stream", { "x-token": streamKey }],
      ["/", { "x-api-key": streamKey }],
      ["/stream", { authorization: `Bearer ${streamKey}` }],
    ];
    for (const [path, headers] of places) {
      const client = await StreamSocket.open(`${run.url}${path}`, { headers });
      expect(await client.subscribe("shredTransactionSubscribe", [{ vote: true }])).toBe(1e9);
      client.close();
      await inForce(run, 0);
    }
  });

  it("are refused at the handshake, or at the subscription if the scope is missing", async () => {
    const run = await streamSockets();
    await expect(connectTo(run, "/stream")).rejects.toThrow("HTTP 401");
    await expect(connectTo(run, "/stream?api-key=other")).rejects.toThrow("HTTP 401");
    await expect(connectTo(run, `/sw_${"2".repeat(43)}`)).rejects.toThrow("HTTP 401");
    await expect(connectTo(run, "/unknown")).rejects.toThrow("HTTP 404");
    const headers = { "x-token": "good" };
    await expect(
      StreamSocket.open(`${run.url}/stream?api-key=${streamKey}`, { headers }),
    ).rejects.toThrow("HTTP 401");
    run.keys.set("good", { ...apiKey("good"), scopes: ["submit"] });
    const client = await connectTo(run, "/stream?api-key=good");
    expect((await client.ask("shredSubscribe")).error).toEqual({
      code: -32600,
      message:
        "scope_missing: shredSubscribe: the API key does not have the scope stream; it has: submit",
      data: { reason: "scope_missing" },
    });
    run.tiers.clear();
    const other = await connectTo(run);
    expect((await other.ask("shredSubscribe")).error?.message).toBe(
      "scope_missing: shredSubscribe: the account has no tier; register tips for shreds first",
    );
  });
});

describe("invalid parameters", () => {
  it("are JSON-RPC errors that name the member, the value and what is expected", async () => {
    const run = await streamSockets("accountsMax: 3");
    const client = await connectTo(run);
    const key = text(accountOf(1));
    const quicknode: [unknown, RegExp][] = [
      [
        [{ commitment: "processed" }],
        /filter: unknown member: expected vote, signature, accounts, got "commitment"$/,
      ],
      [[{}, {}], /: expected at most 1 parameter: filter, got 2$/],
      [["all"], /: filter: expected an object, got "all"$/],
      [[{ vote: 1 }], /: vote: expected true or false, got 1$/],
      [[{ signature: key }], /: signature: expected a signature in base58 \(64 bytes\), got "/],
      [[{ accounts: { include: key } }], /: accounts\.include: expected an array of public keys/],
      [
        [{ accounts: { include: [key, "0OIl"] } }],
        /: accounts\.include\[1\]: expected a public key in base58 \(32 bytes\), got "0OIl"$/,
      ],
      [
        [{ accounts: { all: [] } }],
        /: accounts: unknown member: expected include, exclude, required/,
      ],
      [
        [{ accounts: { include: [key, key], exclude: [key], required: [key] } }],
        /: accounts in the filter: expected at most 3, got 4$/,
      ],
    ];
    for (const [params, message] of quicknode) {
      const { error } = await client.ask("shredTransactionSubscribe", params);
      expect(error?.message).toMatch(message);
      expect(error?.code).toBe(-32602);
    }
    const tracker: [unknown, number, RegExp][] = [
      [[{ accounts: {} }], -32602, /filter: unknown member: expected accountInclude/],
      [[{}, { commitment: "processed" }], -32602, /options: unknown member: expected encoding/],
      [
        [{}, { encoding: "jsonParsed" }],
        -32602,
        /encoding: expected base58, base64, json, got "jsonParsed"$/,
      ],
      [
        [{}, { transactionDetails: "none" }],
        -32602,
        /transactionDetails: expected full, accounts, signatures/,
      ],
      [[{}, { maxSupportedTransactionVersion: 2 }], -32015, /expected 0 or 1, got 2$/],
      [[{}, { maxSupportedTransactionVersion: "0" }], -32015, /expected 0 or 1, got "0"$/],
    ];
    for (const [params, code, message] of tracker) {
      const { error } = await client.ask("shredSubscribe", params);
      expect(error?.message).toMatch(message);
      expect(error?.code).toBe(code);
    }
    for (const params of [[], ["1"], [1, 2], [1.5]]) {
      expect((await client.ask("shredUnsubscribe", params)).error?.code).toBe(-32602);
    }
    client.send("{");
    await until(() => client.texts.some((each) => each.includes("json_invalid")), "the error");
    expect((await client.ask("shredTransactionSubscribe", { vote: true })).error?.code).toBe(
      -32602,
    );
    expect(run.service.status().filters.filters).toBe(0);
    expect(client.end).toBeUndefined();
  });

  it("name the missing section if streams are off", async () => {
    const run = await streamSockets();
    const off = await StreamSocket.open(
      `${(await GatewayRun.open()).url("").replace("http", "ws")}/stream?api-key=good`,
    );
    expect((await off.ask("shredSubscribe")).error).toMatchObject({
      code: -32601,
      message: expect.stringContaining("has not configured the section streams"),
    });
    expect(run.service.status().filters.filters).toBe(0);
  });
});

describe("limits", () => {
  it("bound the subscriptions of an account, on all its connections", async () => {
    const run = await streamSockets("subscriptionsPerAccountMax: 2");
    const [first, second] = [await connectTo(run), await connectTo(run)];
    const number = await first.subscribe("shredSubscribe");
    await second.subscribe("shredTransactionSubscribe");
    expect((await second.ask("shredSubscribe")).error).toMatchObject({
      code: -32005,
      message:
        "rate_limited: shredSubscribe: streams of this account: expected at most 2 at once, got one more; close one first",
    });
    await first.ask("shredUnsubscribe", [number]);
    await second.subscribe("shredSubscribe");
    expect(run.service.status().accounts.map(({ dialect, open }) => [dialect, open])).toEqual([
      ["shred", 1],
      ["shred_transaction", 1],
    ]);
  });

  it("take filters of 10,000 accounts on /stream", async () => {
    const run = await streamSockets();
    const client = await connectTo(run);
    const include = Array.from({ length: 10_000 }, (_, i) => text(accountOf(i)));
    await client.subscribe("shredTransactionSubscribe", [{ accounts: { include } }]);
    expect(run.service.status().filters.accounts).toBe(10_000);
  });
});
