// Where leaders take transactions over QUIC, as a node's getClusterNodes tells it.
//
// One for all routes, opened by the composition. Asked again every few minutes, and soon when somebody
// asks for a leader that the last answer did not name. What nodes say of themselves is a stranger's word: addresses
// that are not public, and ports of the system's own services, are not taken, lest a leader points the route at this machine's neighbours. A
// failed call leaves the last answer in force.

import { destinationRefusal } from "../../core/addresses/address-classes.ts";
import { formatAddress, parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { TpuAddress } from "./types.ts";

/** solana/rpc-client.ts is the real one. */
interface ClusterNodes {
  /** May reject. */
  clusterNodes(): Promise<
    readonly { readonly identity: string; readonly tpuQuic: string | null }[]
  >;
}

interface NodeAddressesDependencies {
  /** null: nobody can be asked. */
  readonly nodes: ClusterNodes | null;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** Takes private addresses, too: of a cluster in one's own network. */
  readonly allowPrivate: boolean;
}

const refreshMs = 180_000;
/** After a failure, and at most so often for leaders that are not named; doubled while they are not. */
const soonMs = 5000;
/** Below are the ports of other services. */
const portMin = 1024;
/** Mainnet has some five thousand nodes. */
const nodesMax = 65_536;

/** An address in text; null: none that is used. */
export function tpuAddressOf(text: string, allowPrivate: boolean): TpuAddress | null {
  try {
    const { bytes, port } = parseEndpoint(text);
    if (port < portMin || destinationRefusal(bytes, allowPrivate) !== undefined) return null;
    return { host: formatAddress(bytes), port };
  } catch {
    return null;
  }
}

export class NodeAddresses {
  readonly #dependencies: NodeAddressesDependencies;
  #addresses: ReadonlyMap<string, TpuAddress> = new Map();
  /** Named by the last answer, without an address that is used. */
  #withoutAddress: ReadonlySet<string> = new Set();
  #isAsking = false;
  #hasAnswer = false;
  /** The pause before somebody who is not named is asked for again. */
  #soonMs = soonMs;
  #askedNs: bigint | null = null;
  #timer: Timer | undefined;
  #isClosed = false;
  #lastFailure = "";

  constructor(dependencies: NodeAddressesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Known at present. */
  get size(): number {
    return this.#addresses.size;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Null: not known as yet, or it has none. The first question to this starts asking the node. */
  addressOf(identity: string): TpuAddress | null {
    const known = this.#addresses.get(identity);
    if (!known && !this.#withoutAddress.has(identity)) this.#askSoon(identity);
    else if (!this.#timer && !this.#isAsking) this.#askAfter(refreshMs);
    return known ?? null;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #askSoon(identity: string): void {
    if (this.#isAsking || this.#isClosed || !this.#dependencies.nodes) return;
    const nowNs = this.#dependencies.clock.monotonicNs();
    if (this.#askedNs !== null && nowNs - this.#askedNs < BigInt(this.#soonMs) * 1_000_000n) {
      return;
    }
    void this.#askFor(identity);
  }

  /** Who was not named twice is not likely to be named soon. */
  async #askFor(identity: string): Promise<void> {
    const isFirst = !this.#hasAnswer;
    await this.#ask();
    if (isFirst) return;
    const isNamed = this.#addresses.has(identity) || this.#withoutAddress.has(identity);
    this.#soonMs = isNamed ? soonMs : Math.min(refreshMs, this.#soonMs * 2);
  }

  #askAfter(ms: number): void {
    this.#timer?.cancel();
    if (this.#isClosed) return;
    this.#timer = this.#dependencies.clock.after(ms, () => {
      this.#timer = undefined;
      void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    const { nodes, clock, allowPrivate } = this.#dependencies;
    if (!nodes || this.#isAsking) return;
    this.#isAsking = true;
    this.#askedNs = clock.monotonicNs();
    try {
      const answer = await nodes.clusterNodes();
      const addresses = new Map<string, TpuAddress>();
      const withoutAddress = new Set<string>();
      for (const { identity, tpuQuic } of answer.slice(0, nodesMax)) {
        const address = tpuQuic === null ? null : tpuAddressOf(tpuQuic, allowPrivate);
        if (address) addresses.set(identity, address);
        else withoutAddress.add(identity);
      }
      this.#addresses = addresses;
      this.#withoutAddress = withoutAddress;
      this.#hasAnswer = true;
      this.#lastFailure = "";
    } catch (error) {
      this.#lastFailure = messageOf(error);
      this.#dependencies.log?.warn(`addresses of leaders: ${this.#lastFailure}`);
    } finally {
      this.#isAsking = false;
    }
    this.#askAfter(this.#hasAnswer && this.#lastFailure === "" ? refreshMs : soonMs);
  }
}
