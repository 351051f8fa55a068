// Interface of a method of the endpoint, and its context.
//
// Implemented by methods/*.ts, collected by methods/table.ts, called by dispatch.ts. A method
// parses its parameters, reads the chain and returns the result in the node's format; it never
// waits.

import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { ChainApi, Commitment } from "../chain/types.ts";
import type { Config, Params } from "./params.ts";

/** The endpoint's identity and version. */
interface NodeIdentity {
  /** Public key in base58. */
  readonly identity: string;
  /** Version in the format of getVersion, for example "4.2.0". */
  readonly version: string;
  readonly featureSet: number;
  readonly shredVersion: number;
  /** "ip:port" of HTTP, when it listens. */
  readonly rpcAddress: () => string | null;
  /**
   * "ip:port" at which a validator (base58) accepts transactions over QUIC; null or absent: none.
   */
  readonly tpuQuicAddress?: (identity: string) => string | null;
}

export interface MethodContext {
  readonly chain: ChainApi;
  readonly clock: Clock;
  readonly node: NodeIdentity;
}

interface Method {
  readonly paramsMax: number;
  readonly run: (context: MethodContext, params: Params) => unknown;
}

export type MethodTable = Readonly<Record<string, Method>>;

/** The commitment of `config`, after a check of its minContextSlot. */
export function commitmentAt({ chain }: MethodContext, config: Config): Commitment {
  const commitment = config.commitment();
  checkMinContextSlot(chain, commitment, config.minContextSlot());
  return commitment;
}

export function checkMinContextSlot(
  chain: ChainApi,
  commitment: Commitment,
  minContextSlot: bigint,
): void {
  const slot = chain.slot(commitment);
  if (slot >= minContextSlot) return;
  throw new ShredwayError(
    "context_slot_ahead",
    `Minimum context slot has not been reached: expected slot ${minContextSlot} or later, got ${slot}`,
    { details: { contextSlot: slot } },
  );
}

/** A value with its context slot. */
export function withContext(
  { chain, node }: MethodContext,
  commitment: Commitment,
  value: unknown,
): { context: { slot: bigint; apiVersion: string }; value: unknown } {
  return { context: { slot: chain.slot(commitment), apiVersion: node.version }, value };
}
