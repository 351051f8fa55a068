// QUIC addresses of leaders, from a node's getClusterNodes.
//
// The composition opens one for all routes. It refreshes every few minutes, and sooner if a leader
// is missing in the last response. Nodes publish their own addresses, so the data is untrusted:
// private addresses and privileged ports are rejected, so that a leader cannot direct traffic at
// hosts in this machine's network. A failed call leaves the last response in force. A response may be
// incomplete: a node that has just started lists a few others. A listed node replaces what is known about it,
// and an address that is not listed any more stays for an hour of responses without it.

import { destinationRefusal } from "../../core/addresses/address-classes.ts";
import { formatAddress, parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { TpuAddress } from "./types.ts";

/** Implemented by solana/rpc-client.ts. */
interface ClusterNodes {
  /** May reject. */
  clusterNodes(): Promise<
    readonly { readonly identity: string; readonly tpuQuic: string | null }[]
  >;
}

interface NodeAddressesDependencies {
  /** null: no node is configured. */
  readonly nodes: ClusterNodes | null;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** Accepts private addresses, for a cluster in the operator's own network. */
  readonly allowPrivate: boolean;
}

const refreshMs = 180_000;
/**
 * Delay after a failure, and minimum interval of refreshes for missing leaders; it doubles while
 * they stay missing.
 */
const retryMsMin = 5000;
/** Lower ports belong to system services. */
const portMin = 1024;
/** Upper bound; mainnet has about 5,000 nodes. */
const nodesMax = 65_536;
/** A node that has just started knows the cluster after some minutes. */
const missingNsMax = 3_600_000_000_000n;

interface KnownAddress {
  readonly address: TpuAddress;
  /** Monotonic time of the first response without the node; null: the last response lists it. */
  readonly missingSinceNs: bigint | null;
}

/** Parses an address; null: invalid or not allowed. */
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
  #addresses: ReadonlyMap<string, KnownAddress> = new Map();
  /** Nodes of the last response without an allowed address. */
  #withoutAddress: ReadonlySet<string> = new Set();
  #isRefreshing = false;
  #hasResponse = false;
  /** Current minimum interval of refreshes for missing leaders. */
  #retryMs = retryMsMin;
  #refreshedNs: bigint | null = null;
  #timer: Timer | undefined;
  #isClosed = false;
  #lastFailure = "";

  constructor(dependencies: NodeAddressesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Number of known addresses. */
  get size(): number {
    return this.#addresses.size;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** null: unknown, or the node has no allowed address. The first call starts the refreshes. */
  addressOf(identity: string): TpuAddress | null {
    const known = this.#addresses.get(identity);
    if (!this.#isListed(identity)) this.#refreshSoon(identity);
    else if (!this.#timer && !this.#isRefreshing) this.#refreshAfter(refreshMs);
    return known?.address ?? null;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Whether the last response lists it. */
  #isListed(identity: string): boolean {
    return (
      this.#addresses.get(identity)?.missingSinceNs === null || this.#withoutAddress.has(identity)
    );
  }

  #refreshSoon(identity: string): void {
    if (this.#isRefreshing || this.#isClosed || !this.#dependencies.nodes) return;
    const nowNs = this.#dependencies.clock.monotonicNs();
    if (
      this.#refreshedNs !== null &&
      nowNs - this.#refreshedNs < BigInt(this.#retryMs) * 1_000_000n
    ) {
      return;
    }
    void this.#refreshFor(identity);
  }

  /** Refreshes for a missing leader; the interval doubles while it stays missing. */
  async #refreshFor(identity: string): Promise<void> {
    const isFirst = !this.#hasResponse;
    await this.#refresh();
    if (isFirst) return;
    this.#retryMs = this.#isListed(identity) ? retryMsMin : Math.min(refreshMs, this.#retryMs * 2);
  }

  #refreshAfter(ms: number): void {
    this.#timer?.cancel();
    if (this.#isClosed) return;
    this.#timer = this.#dependencies.clock.after(ms, () => {
      this.#timer = undefined;
      void this.#refresh();
    });
  }

  #apply(answer: Awaited<ReturnType<ClusterNodes["clusterNodes"]>>, nowNs: bigint): void {
    const { allowPrivate } = this.#dependencies;
    const addresses = new Map<string, KnownAddress>();
    const withoutAddress = new Set<string>();
    for (const { identity, tpuQuic } of answer) {
      const address = tpuQuic === null ? null : tpuAddressOf(tpuQuic, allowPrivate);
      if (address) addresses.set(identity, { address, missingSinceNs: null });
      else withoutAddress.add(identity);
    }
    for (const [identity, { address, missingSinceNs }] of this.#addresses) {
      const sinceNs = missingSinceNs ?? nowNs;
      const isListed = addresses.has(identity) || withoutAddress.has(identity);
      if (isListed || nowNs - sinceNs >= missingNsMax || addresses.size >= nodesMax) continue;
      addresses.set(identity, { address, missingSinceNs: sinceNs });
    }
    this.#addresses = addresses;
    this.#withoutAddress = withoutAddress;
  }

  async #refresh(): Promise<void> {
    const { nodes, clock } = this.#dependencies;
    if (!nodes || this.#isRefreshing) return;
    this.#isRefreshing = true;
    this.#refreshedNs = clock.monotonicNs();
    try {
      const answer = await nodes.clusterNodes();
      // A node that has just started knows no others yet.
      if (answer.length === 0 && this.#addresses.size > 0) {
        throw new Error("getClusterNodes: expected the nodes of the cluster, got an empty list");
      }
      this.#apply(answer.slice(0, nodesMax), clock.monotonicNs());
      this.#hasResponse = true;
      this.#lastFailure = "";
    } catch (error) {
      this.#lastFailure = messageOf(error);
      this.#dependencies.log?.warn(
        `tpu: leader addresses could not be refreshed: ${this.#lastFailure}`,
      );
    } finally {
      this.#isRefreshing = false;
    }
    this.#refreshAfter(this.#hasResponse && this.#lastFailure === "" ? refreshMs : retryMsMin);
  }
}
