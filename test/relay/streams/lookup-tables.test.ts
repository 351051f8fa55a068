// Address lookup tables of decoded streams: read from the node of a real chain, matched by filters, and
// sent to clients.

import { AddressLookupTableProgram, type PublicKey } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { RpcEndpoint } from "../../../src/sandbox/rpc/endpoint.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  type DeshredClient,
  type RunningStreams,
  runningStreams,
  subscribeDeshred,
} from "../../support/streams/stream-clients.ts";
import {
  accountOf,
  batchOf,
  legacyInstruction,
  slotOf,
  v0TransactionOf,
} from "../../support/streams/stream-relay.ts";
import { addressOf, alice, bob, ChainRun, carol, dave } from "../../support/transactions/chain.ts";

interface Scene extends RunningStreams {
  readonly run: ChainRun;
  readonly endpoint: RpcEndpoint;
}

/** Streams whose node is a sandbox chain. */
async function scene(): Promise<Scene> {
  const run = await ChainRun.open();
  const endpoint = closing(
    await RpcEndpoint.open(run.chain, new ManualClock(), { listen: "127.0.0.1:0" }),
  );
  const node = new RpcClient(`http://${endpoint.address}`);
  const running = await runningStreams("", { firstSlot: 5n }, (...call) => node.call(...call));
  return { ...running, run, endpoint };
}

const lookups = ({ service }: RunningStreams) => {
  const { lookupTables } = service.status();
  if (!lookupTables) throw new Error("expected the status of lookup tables");
  return lookupTables;
};

/** The loaded addresses of the transaction of a slot; undefined: it has not arrived. */
function loadedIn({ messages }: DeshredClient, slot: number) {
  const found = messages.find((one) => one.deshred_transaction?.slot === slot);
  if (!found?.deshred_transaction) return undefined;
  const { transaction } = found.deshred_transaction;
  return {
    filters: found.filters.toSorted(),
    writable: (transaction.loaded_writable_addresses ?? []).map(hexOf),
    readonly: (transaction.loaded_readonly_addresses ?? []).map(hexOf),
  };
}

const keyOf = ({ publicKey }: { readonly publicKey: PublicKey }) => hexOf(publicKey.toBytes());

async function inForce({ service }: RunningStreams, filters: number): Promise<void> {
  await until(() => {
    const { filters: used } = service.status();
    return used.filters === filters && used.isCurrent;
  }, "the filters");
}

/** Indexes of the writable and of the read-only address. */
const using = (table: PublicKey, indexes: readonly [number, number]) =>
  v0TransactionOf([accountOf(1), accountOf(2)], table.toBytes(), indexes);

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("address lookup tables", () => {
  it("are read when a transaction needs them, and then matched and sent", async () => {
    const running = await scene();
    const { lookup } = running.run.lookupTable(alice, [bob, carol]);
    const client = subscribeDeshred(running.service.address, {
      deshred_transactions: {
        all: {},
        writable: { account_required: [addressOf(carol)] },
        readonly: { account_include: [addressOf(bob)] },
        none: { account_exclude: [addressOf(bob)] },
      },
    });
    await inForce(running, 4);
    running.send(slotOf(20n, [batchOf([using(lookup.key, [1, 0])])]));
    await until(() => loadedIn(client, 20) !== undefined, "a transaction with an unknown table");
    // An unknown address matches nothing and excludes nothing.
    expect(loadedIn(client, 20)).toEqual({ filters: ["all", "none"], writable: [], readonly: [] });
    await until(() => lookups(running).found === 1, "the table");
    running.send(slotOf(21n, [batchOf([using(lookup.key, [1, 0])])]));
    await until(() => loadedIn(client, 21) !== undefined, "a transaction with a known table");
    expect(loadedIn(client, 21)).toEqual({
      filters: ["all", "readonly", "writable"],
      writable: [keyOf(carol)],
      readonly: [keyOf(bob)],
    });
    expect(lookups(running)).toMatchObject({
      tables: 1,
      addresses: 2,
      answered: 1,
      failed: 0,
      missing: 0,
      waiting: 0,
    });
    const { deshred } = running.relay.snapshot();
    expect(deshred).toMatchObject({ stream_lookups: 2n, stream_unresolved: 1n });
  });

  it("are read again after an extension in the stream, once the node has confirmed its slot", async () => {
    const running = await scene();
    const { run } = running;
    const { lookup } = run.lookupTable(alice, [bob]);
    const client = subscribeDeshred(running.service.address, { deshred_transactions: { all: {} } });
    await inForce(running, 1);
    running.send(slotOf(20n, [batchOf([using(lookup.key, [0, 0])])]));
    await until(() => lookups(running).found === 1, "the table");
    // The stream shows the extension before the chain executes it.
    const extension = AddressLookupTableProgram.extendLookupTable({
      payer: alice.publicKey,
      authority: alice.publicKey,
      lookupTable: lookup.key,
      addresses: [dave.publicKey],
    });
    running.send(slotOf(21n, [batchOf([legacyInstruction(extension)])]));
    await until(() => lookups(running).waiting === 1, "the report of the change");
    running.send(slotOf(22n, [batchOf([using(lookup.key, [1, 0])])]));
    await until(
      () => loadedIn(client, 22) !== undefined,
      "the transaction before the extension is confirmed",
    );
    expect(loadedIn(client, 22)?.writable).toEqual([]);
    run.chain.send(run.legacy([extension], [alice]));
    while (run.chain.slot("confirmed") < 25n) run.slots();
    running.clock.move(7000);
    await until(() => lookups(running).addresses === 2, "the longer table");
    running.send(slotOf(30n, [batchOf([using(lookup.key, [1, 0])])]));
    await until(() => loadedIn(client, 30) !== undefined, "the transaction after it");
    expect(loadedIn(client, 30)?.writable).toEqual([keyOf(dave)]);
    await until(() => lookups(running).waiting === 0, "an empty queue");
  });

  it("do not exist for an address of another account, and a failing node is asked again", async () => {
    const running = await scene();
    running.endpoint.faults.refuse = "unavailable";
    const client = subscribeDeshred(running.service.address, { deshred_transactions: { all: {} } });
    await inForce(running, 1);
    const { lookup } = running.run.lookupTable(alice, [bob]);
    const made = [using(alice.publicKey, [0, 0]), using(lookup.key, [0, 0])];
    running.send(slotOf(20n, [batchOf(made)]));
    await until(() => lookups(running).failed > 0, "the failure");
    expect(lookups(running)).toMatchObject({ tables: 0, waiting: 2, answered: 0 });
    running.endpoint.faults.refuse = "nothing";
    running.clock.move(5000);
    await until(() => lookups(running).answered > 0, "an answer");
    expect(lookups(running)).toMatchObject({ tables: 1, found: 1, missing: 1 });
    await until(
      () => client.messages.filter((one) => one.deshred_transaction).length === 2,
      "both transactions",
    );
  });

  it("are not resolved without a node", async () => {
    const running = await runningStreams();
    const client = subscribeDeshred(running.service.address, { deshred_transactions: { all: {} } });
    await inForce(running, 1);
    running.send(slotOf(120n, [batchOf([using(alice.publicKey, [0, 0])])]));
    await until(() => loadedIn(client, 120) !== undefined, "the transaction");
    expect(running.service.status().lookupTables).toBeNull();
    expect(loadedIn(client, 120)).toEqual({ filters: ["all"], writable: [], readonly: [] });
  });
});
