// The TPU route to the leaders of a sandbox chain, composed as in the product.
//
// The test controls the slots, or `drive` runs them in real time. All offered transactions are
// recorded with their results.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatAddress, parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { RouteConfig } from "../../../src/core/configuration/configuration.ts";
import { parsePubkey, pubkeyBytes } from "../../../src/core/primitives.ts";
import {
  buildTransaction,
  transferInstruction,
} from "../../../src/core/transactions/build-legacy.ts";
import { TpuRoute, type TpuRouteDependencies } from "../../../src/gateway/routes/tpu-route.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import type { ChainOptions } from "../../../src/sandbox/chain/options.ts";
import { SandboxTpu, type SandboxTpuOptions } from "../../../src/sandbox/tpu/tpu-leaders.ts";
import type { TpuServer } from "../../../src/sandbox/tpu/tpu-server.ts";
import { closing } from "../closing.ts";
import { routeConfig, TestOutbound } from "../gateway/partner.ts";
import { until } from "../network/udp-receiver.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { bob, ChainRun } from "../transactions/chain.ts";
import { factsOf } from "../transactions/facts.ts";
import { needQuiche } from "./quic-client.ts";

/** Alice of chain.ts, who has SOL. */
const payer = new SandboxKeyPair(new Uint8Array(32).fill(1));
/** Identity whose stake the leaders know. */
export const gateway = SandboxKeyPair.named(1, "gateway");
const gatewayStake = 10n ** 15n;
const driveMs = 5;
/** Reached only by failures. */
const slowMs = 30_000;
/** Longer than any test: a transaction never times out. */
const restMsDefault = 600_000;
/** On a machine that is too slow, slots are late. */
const catchUpSlotsMax = 2n;
/** Far below the validity of a blockhash. */
const behindSlotsMax = 16n;

export interface TpuRunOptions {
  readonly chain?: ChainOptions;
  readonly tpu?: SandboxTpuOptions;
  readonly route?: Partial<RouteConfig>;
  readonly clock?: Clock;
  /** The route uses the staked identity. Default false: an ephemeral one without stake. */
  readonly isStaked?: boolean;
  /** Default: the leaders' current addresses. */
  readonly addresses?: (run: {
    chain: ChainRun;
    tpu: SandboxTpu;
  }) => TpuRouteDependencies["addresses"];
}

/** The leaders' current addresses. */
export function addressesIn(tpu: SandboxTpu): TpuRouteDependencies["addresses"] {
  return {
    addressOf: (identity) => {
      const address = tpu.addressOf(identity);
      if (address === null) return null;
      const { bytes, port } = parseEndpoint(address);
      return { host: formatAddress(bytes), port };
    },
  };
}

export class TpuRun {
  readonly chain: ChainRun;
  readonly tpu: SandboxTpu;
  readonly route: TpuRoute;
  readonly outbound: TestOutbound[] = [];
  /** Transactions without a result, oldest first, with the slots in which they were offered. */
  readonly #open = new Map<TestOutbound, bigint>();
  readonly #clock: Clock;
  #lamports = 0n;

  static async open(options: TpuRunOptions = {}): Promise<TpuRun> {
    const { clock = systemClock, isStaked = false } = options;
    const chain = await ChainRun.open({ validators: 20, ...options.chain });
    const tpu = closing(
      await SandboxTpu.open(
        chain.chain,
        { quiche: needQuiche(), clock },
        {
          stakes: new Map([[gateway.address, gatewayStake]]),
          ...options.tpu,
          limits: {
            connectionsPerAddressPerMinute: 1000,
            // Long, because the machine may be busy.
            handshakeMs: slowMs,
            streamMs: slowMs,
            ...options.tpu?.limits,
          },
        },
      ),
    );
    const identityFile = join(temporaryFolder(), "identity.json");
    writeFileSync(identityFile, "the seed is handed in");
    const config = routeConfig({
      kind: "tpu",
      connections: 64,
      timeoutMs: slowMs,
      ...(isStaked && { identityFile }),
      ...options.route,
    });
    const route = new TpuRoute(config, {
      clock,
      leaders: {
        slot: () => chain.chain.currentSlot,
        leaderAt: (slot) => chain.chain.leaderOf(slot),
      },
      addresses: options.addresses?.({ chain, tpu }) ?? addressesIn(tpu),
      // The transaction of `offer` stays valid, however slow the machine and the link are.
      copyMsMax: restMsDefault,
      partners: () => new Set(),
      readSeed: () => Uint8Array.from(gateway.seed),
    });
    return new TpuRun({ chain, tpu, route: closing(route), clock });
  }

  private constructor({
    chain,
    tpu,
    route,
    clock,
  }: Pick<TpuRun, "chain" | "tpu" | "route"> & { readonly clock: Clock }) {
    this.#clock = clock;
    this.chain = chain;
    this.tpu = tpu;
    this.route = route;
  }

  get slot(): bigint {
    return this.chain.chain.currentSlot;
  }

  /** Leader of the current slot, or of another. */
  leader(slot = this.slot): TpuServer {
    const server = this.tpu.leaders.get(this.chain.chain.leaderOf(slot) ?? "");
    if (!server) throw new Error(`expected a leader of slot ${slot}`);
    return server;
  }

  /** Passes slots until the first of a leader's window; the next window has another leader. */
  toWindow(): void {
    do this.chain.slots(1);
    while (this.slot % 4n !== 0n || this.leader() === this.leader(this.slot + 4n));
  }

  /** Offers a new transfer; false: the route rejected it. */
  offer(restMs = restMsDefault): boolean {
    const wire = this.#transfer(++this.#lamports);
    const deadlineNs = this.#clock.nowNs() + BigInt(restMs) * 1_000_000n;
    const outbound = new TestOutbound([factsOf(wire)], { deadlineNs });
    outbound.onReport = () => {
      if (outbound.events.at(-1)?.kind !== "sent") this.#open.delete(outbound);
    };
    if (!this.route.offer(outbound)) return false;
    this.outbound.push(outbound);
    this.#open.set(outbound, this.slot);
    return true;
  }

  /** Offers and waits for the result: the kinds of the reported events. */
  async send(): Promise<string> {
    if (!this.offer()) throw new Error("expected a route that accepts a transaction");
    const outbound = this.outbound.at(-1);
    await outbound?.ended;
    return outbound?.kinds ?? "";
  }

  /** Executed, possibly in an open block. */
  get landed(): number {
    const { chain } = this.chain;
    return this.outbound.filter(
      ({ transactions }) => chain.status(transactions[0]?.signature ?? "") !== null,
    ).length;
  }

  /** Waits until every transaction has a result. */
  ended(): Promise<void> {
    return until(() => this.#open.size === 0, `the end of ${this.outbound.length} transactions`);
  }

  /** Waits until this many of them are in blocks. */
  async executed(count: number): Promise<void> {
    await until(() => this.chain.chain.transactionCount() >= BigInt(count), `${count} executed`);
  }

  /** Number of transactions by reported events: the kinds, and the reason of the last one. */
  get outcomes(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { kinds, events } of this.outbound) {
      const last = events.at(-1);
      const outcome = last && "reason" in last ? `${kinds}: ${last.reason}` : kinds;
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    }
    return counts;
  }

  /** From now on slots pass in real time, but none while an old transaction has no result. */
  drive(): void {
    let lastNs = systemClock.monotonicNs();
    const timer = systemClock.every(driveMs, () => {
      const nowNs = systemClock.monotonicNs();
      const passedNs = nowNs - lastNs;
      lastNs = nowNs;
      const [oldest = this.slot] = this.#open.values();
      if (this.slot - oldest >= behindSlotsMax) return;
      const most = catchUpSlotsMax * this.chain.slotNs;
      this.chain.pass(passedNs > most ? most : passedNs);
    });
    closing({ close: () => timer.cancel() });
  }

  /** Signed by node:crypto: web3.js takes some milliseconds for each. */
  #transfer(lamports: bigint): Uint8Array {
    const blockhash = pubkeyBytes(parsePubkey(this.chain.blockhash));
    const instruction = transferInstruction(payer.publicKey, bob.publicKey.toBytes(), lamports);
    return buildTransaction([payer], [instruction], blockhash);
  }
}
