// SandboxTpu: every validator of the sandbox accepts transactions over QUIC for its own slots.
//
// Opened by the sandbox, if quiche is available, and by tests. As with real validators, the chain
// executes a transaction immediately in the leader's own slots; it is held if these are near.
// Otherwise it is forwarded if the sender is staked, and dropped as late if not. getClusterNodes
// uses `addressOf`; `routeConfig` is the configuration that reaches all of them.

import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Quiche } from "../../core/quic/quiche.ts";
import type { ChainApi, ChainEvent } from "../chain/types.ts";
import type { RouteInput } from "../partners/partners.ts";
import type { TpuLimits } from "./limits.ts";
import type { TpuPeer } from "./peer-connection.ts";
import { type StakeTable, TpuServer } from "./tpu-server.ts";

/** A validator holds transactions this many slots ahead of its own. */
const holdSlots = 20n;
/** Maximum number of transactions that one leader holds. */
const heldMax = 4096;

export interface SandboxTpuOptions {
  /** Address without a port. Default "127.0.0.1". */
  readonly host?: string;
  /** Stakes of identities that are not validators of the chain: base58 -> lamports. */
  readonly stakes?: ReadonlyMap<string, bigint>;
  readonly limits?: Partial<TpuLimits>;
}

interface SandboxTpuCounts {
  /** Passed to the chain during their leader's slots. */
  executed: number;
  /** Held until their leader's slots. */
  held: number;
  /** Forwarded to the current leader, for a staked peer. */
  forwarded: number;
  /** Dropped: their leader has no slots soon. */
  late: number;
  /** Dropped: too many were held. */
  overflowed: number;
  /** Rejected by the chain: an invalid transaction, an invalid signature, or a full queue. */
  refused: number;
}

function stakeTable(chain: ChainApi, others: ReadonlyMap<string, bigint>): StakeTable {
  const stakes = new Map(others);
  for (const { identity, stakeLamports } of chain.validators()) stakes.set(identity, stakeLamports);
  const total = [...stakes.values()].reduce((sum, stake) => sum + stake, 0n);
  return { total, of: (identity) => stakes.get(identity) ?? 0n };
}

export class SandboxTpu {
  readonly counts: SandboxTpuCounts = {
    executed: 0,
    held: 0,
    forwarded: 0,
    late: 0,
    overflowed: 0,
    refused: 0,
  };
  readonly #chain: ChainApi;
  readonly #leaders = new Map<string, TpuServer>();
  readonly #held = new Map<string, Uint8Array[]>();
  readonly #unsubscribe: () => void;
  /** The current slot by time. */
  #slot: bigint;

  /** Throws ShredwayError "system" if a socket is not available; everything is closed then. */
  static async open(
    chain: ChainApi,
    { quiche, clock }: { readonly quiche: Quiche; readonly clock: Clock },
    options: SandboxTpuOptions = {},
  ): Promise<SandboxTpu> {
    const tpu = new SandboxTpu(chain);
    const { stakes: others = new Map<string, bigint>(), ...rest } = options;
    const stakes = stakeTable(chain, others);
    try {
      for (const { identity } of chain.validators()) {
        const onTransaction = (wire: Uint8Array, peer: TpuPeer) => tpu.#take(identity, wire, peer);
        const server = await TpuServer.open({ quiche, clock, stakes, onTransaction, ...rest });
        tpu.#leaders.set(identity, server);
      }
      return tpu;
    } catch (thrown) {
      await tpu.close();
      throw thrown;
    }
  }

  private constructor(chain: ChainApi) {
    this.#chain = chain;
    this.#slot = chain.slot("processed");
    this.#unsubscribe = chain.subscribe((event) => this.#follow(event));
  }

  /** Servers by identity (base58), each with its faults and counts. */
  get leaders(): ReadonlyMap<string, TpuServer> {
    return this.#leaders;
  }

  /** "ip:port" over QUIC; null: not a validator of this chain. */
  addressOf(identity: string): string | null {
    return this.#leaders.get(identity)?.address ?? null;
  }

  /** Value for the key `routes` of a configuration. */
  routeConfig(identityFile?: string): RouteInput {
    return { name: "tpu", kind: "tpu", ...(identityFile !== undefined && { identityFile }) };
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#unsubscribe();
    for (const server of this.#leaders.values()) await server.close();
  }

  #take(identity: string, wire: Uint8Array, { isStaked }: TpuPeer): void {
    if (this.#chain.leaderOf(this.#slot) === identity) {
      this.counts.executed++;
      this.#send(wire);
    } else if (this.#leadsSoon(identity)) {
      this.#hold(identity, wire);
    } else if (isStaked) {
      this.counts.forwarded++;
      this.#send(wire);
    } else {
      this.counts.late++;
    }
  }

  #leadsSoon(identity: string): boolean {
    for (let slot = this.#slot + 1n; slot <= this.#slot + holdSlots; slot++) {
      if (this.#chain.leaderOf(slot) === identity) return true;
    }
    return false;
  }

  #hold(identity: string, wire: Uint8Array): void {
    const held = this.#held.get(identity) ?? [];
    if (held.length >= heldMax) {
      this.counts.overflowed++;
      return;
    }
    this.counts.held++;
    held.push(wire);
    this.#held.set(identity, held);
  }

  #follow(event: ChainEvent): void {
    if (event.kind !== "slot" && event.kind !== "skipped") return;
    if (event.slot > this.#slot) this.#slot = event.slot;
    // The event for a skipped slot comes at its end: its leader has the next slot, or forwards.
    const leader = this.#chain.leaderOf(this.#slot);
    const held = leader === null ? undefined : this.#held.get(leader);
    if (leader === null || !held) return;
    this.#held.delete(leader);
    for (const wire of held) {
      this.counts.executed++;
      this.#send(wire);
    }
  }

  #send(wire: Uint8Array): void {
    try {
      this.#chain.send(wire);
    } catch (thrown) {
      if (!(thrown instanceof ShredwayError)) throw thrown;
      this.counts.refused++;
    }
  }
}
