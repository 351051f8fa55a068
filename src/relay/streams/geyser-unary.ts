// The calls of geyser.Geyser with one response, which stock clients make before they subscribe.

import { messageOf } from "../../core/errors.ts";
import type { GrpcHandler } from "../../core/grpc/grpc-server.ts";
import { MessageReader, MessageWriter } from "../../core/grpc/protobuf.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import { isObject } from "../../core/values.ts";
import { packageVersion } from "../../core/version.ts";
import { geyserPaths } from "./geyser-messages.ts";

export interface ChainView {
  /** The slot by the relay's own shreds; null: unknown. */
  readonly slot: () => bigint | null;
  /** A read call of the node of solana.rpc; absent: no node is configured. */
  readonly call?: (method: string, params: readonly unknown[]) => Promise<unknown>;
}

const commitments = ["processed", "confirmed", "finalized"] as const;

export function unaryMethods(chain: ChainView): Readonly<Record<string, GrpcHandler>> {
  return {
    [geyserPaths.ping]: ({ message }) =>
      new MessageWriter().uint(1, new MessageReader(message).uint(1)).finish(),
    [geyserPaths.getVersion]: () => {
      const version = JSON.stringify({
        version: { package: "shredway", version: packageVersion() },
      });
      return new MessageWriter().string(1, version).finish();
    },
    [geyserPaths.getSlot]: ({ message }) => getSlot(chain, message),
    [geyserPaths.getBlockHeight]: async ({ message }) => {
      const height = await ask(chain, "getBlockHeight", [{ commitment: commitmentIn(message, 1) }]);
      return new MessageWriter().uint(1, countIn(height)).finish();
    },
    [geyserPaths.getLatestBlockhash]: async ({ message }) => {
      const params = [{ commitment: commitmentIn(message, 1) }];
      const { slot, value } = contextOf(await ask(chain, "getLatestBlockhash", params));
      const { blockhash, lastValidBlockHeight } = isObject(value) ? value : {};
      if (typeof blockhash !== "string") throw unexpected();
      return new MessageWriter()
        .uint(1, slot)
        .string(2, blockhash)
        .uint(3, countIn(lastValidBlockHeight))
        .finish();
    },
    [geyserPaths.isBlockhashValid]: async ({ message }) => {
      const blockhash = new MessageReader(message).string(1);
      const params = [blockhash, { commitment: commitmentIn(message, 2) }];
      const { slot, value } = contextOf(await ask(chain, "isBlockhashValid", params));
      return new MessageWriter()
        .uint(1, slot)
        .uint(2, value === true ? 1 : 0)
        .finish();
    },
  };
}

/** The refusal of the service's main call, which needs executed blocks. */
export function subscribeRefusal(): GrpcError {
  return new GrpcError(
    "UNIMPLEMENTED",
    "Subscribe needs a node that executes blocks; use SubscribeDeshred for transactions before execution",
  );
}

/** Without a node, the relay's own slot is as good as processed. */
async function getSlot(chain: ChainView, message: Uint8Array): Promise<Uint8Array> {
  const commitment = commitmentIn(message, 1);
  const own = commitment === "processed" ? chain.slot() : null;
  const slot = own ?? countIn(await ask(chain, "getSlot", [{ commitment }]));
  return new MessageWriter().uint(1, slot).finish();
}

function commitmentIn(message: Uint8Array, field: number): string {
  const number = new MessageReader(message).uint(field);
  const commitment = commitments[Number(number)];
  if (commitment !== undefined) return commitment;
  throw new GrpcError("INVALID_ARGUMENT", `commitment: expected 0, 1 or 2, got ${number}`);
}

async function ask(
  { call }: ChainView,
  method: string,
  params: readonly unknown[],
): Promise<unknown> {
  if (!call) {
    throw new GrpcError(
      "UNAVAILABLE",
      `${method} needs a node; the operator has not set solana.rpc`,
    );
  }
  try {
    return await call(method, params);
  } catch (error) {
    throw new GrpcError("UNAVAILABLE", messageOf(error));
  }
}

function countIn(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw unexpected();
}

function contextOf(result: unknown): { readonly slot: number; readonly value: unknown } {
  if (!isObject(result) || !isObject(result["context"])) throw unexpected();
  return { slot: countIn(result["context"]["slot"]), value: result["value"] };
}

function unexpected(): GrpcError {
  return new GrpcError("UNAVAILABLE", "the node's response has an unknown form");
}
