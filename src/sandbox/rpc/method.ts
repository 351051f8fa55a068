// What a method of the endpoint is, and what it may ask.
//
// Implemented by methods/*.ts, gathered by methods/table.ts, called by dispatch.ts. A method reads
// its parameters, asks the chain and returns the result as the node shapes it; it never waits.

import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { ChainApi, Commitment } from "../chain/types.ts";
import type { Config, Params } from "./params.ts";

/** Who the endpoint says it is. */
interface NodeIdentity {
  /** Base58. */
  readonly identity: string;
  /** As getVersion writes it, e.g. "4.2.0". */
  readonly version: string;
  readonly featureSet: number;
  readonly shredVersion: number;
  /** "ip:port" of HTTP, once it listens. */
  readonly rpcAddress: () => string | null;
  /** "ip:port" where a validator (base58) takes transactions over QUIC; null or absent: nowhere. */
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

/** The commitment of `config`, after its minContextSlot has been checked against the chain. */
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

/** A value with the slot that it is answered for. */
export function withContext(
  { chain, node }: MethodContext,
  commitment: Commitment,
  value: unknown,
): { context: { slot: bigint; apiVersion: string }; value: unknown } {
  return { context: { slot: chain.slot(commitment), apiVersion: node.version }, value };
}
