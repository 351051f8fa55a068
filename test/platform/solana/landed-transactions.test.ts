// Payments of landed transactions, read from the sandbox's real RPC endpoint.

import { describe, expect, it } from "vitest";
import { parsePubkey, pubkeyBytes } from "../../../src/core/primitives.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { RpcEndpoint } from "../../../src/sandbox/rpc/endpoint.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  dave,
  erin,
  transferOf,
  wallet,
} from "../../support/transactions/chain.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

const tips = new Set([addressOf(bob), addressOf(carol)]);

async function open(): Promise<{ run: ChainRun; node: RpcClient }> {
  const run = await ChainRun.open({ confirmedDepth: 2 });
  const endpoint = await RpcEndpoint.open(run.chain, new ManualClock(), { listen: "127.0.0.1:0" });
  closing(endpoint);
  return { run, node: new RpcClient(`http://${endpoint.address}`) };
}

describe("landed transactions", () => {
  it("of every version and outcome are returned with the gain of each address", async () => {
    const { run, node } = await open();
    const { lookup } = run.lookupTable(erin, [carol]);
    const v1 = v1Transfer(
      new SandboxKeyPair(new Uint8Array(32).fill(1)),
      bob.publicKey.toBytes(),
      9n,
      {
        blockhash: pubkeyBytes(parsePubkey(run.blockhash)),
        computeUnitLimit: 1000,
        loadedBytesLimit: 100_000,
      },
    );
    const legacy = [transferOf(alice, bob, 3n), transferOf(alice, carol, 4n)];
    const back = [transferOf(dave, bob, 7n), transferOf(bob, dave, 7n)];
    const wires: [Uint8Array, bigint][] = [
      [run.legacy(legacy, [alice]), 7n],
      [run.versioned([transferOf(alice, bob, 5n)], [alice]), 5n],
      [run.versioned([transferOf(alice, carol, 6n)], [alice], [lookup]), 0n],
      [v1, 9n],
      [run.legacy(back, [dave, bob]), 0n],
      [run.transfer(bob, alice, 8n), -5008n],
      [
        run.legacy(
          [transferOf(alice, bob, 1n), transferOf(wallet(9), bob, 1n)],
          [alice, wallet(9)],
        ),
        0n,
      ],
    ];
    const signatures = wires.map(([wire]) => run.chain.send(wire));
    const ask = () => Promise.all(signatures.map((each) => node.landedTransaction(each, tips)));
    expect(new Set(await ask())).toEqual(new Set([null]));
    run.slots(1);
    expect(new Set(await ask())).toEqual(new Set([null])); // processed is not sufficient
    run.slots(4);
    const answers = await ask();
    expect(answers.map((each) => each?.gainLamports)).toEqual(wires.map(([, gain]) => gain));
    expect(answers.map((each) => each?.err === null)).toEqual(wires.map((_, i) => i < 6));
    for (const each of answers) expect(each?.slot).toBeTypeOf("bigint");
  });

  it("have a state, with the newest slot of the node that answers", async () => {
    const { run, node } = await open();
    const [landing, other] = [run.transfer(alice, bob, 1n), run.transfer(alice, bob, 2n)];
    const signatures = [run.chain.send(landing), run.chain.send(other)];
    run.slots(1);
    const states = async (searchHistory: boolean) => {
      const { slot, states: found } = await node.landingStates(signatures, searchHistory);
      expect(slot).toBe(run.chain.slot("processed"));
      return found;
    };
    expect(await states(false)).toEqual(["processed", "processed"]);
    run.slots(4);
    expect(await states(false)).toEqual(["landed", "landed"]);
    run.slots(340);
    expect(await states(false)).toEqual(["absent", "absent"]);
    expect(await states(true)).toEqual(["landed", "landed"]);
  });
});
