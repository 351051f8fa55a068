// The calls to a block engine: authentication by a signed challenge, renewal of tokens, heartbeats.
//
// Used by subscription.ts. Each function makes one step and rejects with GrpcError. No error and no log
// contains a token.

import type { GrpcChannel } from "../../core/grpc/grpc-channel.ts";
import { ProtobufError } from "../../core/grpc/protobuf.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import {
  challengeText,
  decodeChallengeResponse,
  decodeHeartbeatResponse,
  decodeRefreshResponse,
  decodeTokensResponse,
  encodeChallengeRequest,
  encodeHeartbeat,
  encodeRefreshRequest,
  encodeTokensRequest,
  type Heartbeat,
  methodPaths,
  subscriberRole,
  type Token,
  type Tokens,
} from "./messages.ts";

/** The part of a key pair that authentication needs; core/key-pair.ts implements it. */
export interface SubscriberKey {
  readonly publicKey: Uint8Array;
  /** The public key in base58. */
  readonly address: string;
  sign(message: Uint8Array): Uint8Array;
}

const callTimeoutMs = 10_000;
const challengeLengthMax = 1024;

/** Obtains both tokens. */
export async function authenticate(channel: GrpcChannel, key: SubscriberKey): Promise<Tokens> {
  const challenge = await call(channel, {
    path: methodPaths.challenge,
    request: encodeChallengeRequest({ role: subscriberRole, publicKey: key.publicKey }),
    decode: decodeChallengeResponse,
  });
  // The key signs nothing but such a text, so a block engine cannot obtain any other signature.
  if (!/^[\x21-\x7e]+$/.test(challenge) || challenge.length > challengeLengthMax) {
    throw new GrpcError(
      "INTERNAL",
      `challenge: expected 1 to ${challengeLengthMax} printable ASCII characters, got ${challenge.length}`,
    );
  }
  const text = challengeText(key.address, challenge);
  const signature = key.sign(new TextEncoder().encode(text));
  return call(channel, {
    path: methodPaths.tokens,
    request: encodeTokensRequest({ challenge: text, publicKey: key.publicKey, signature }),
    decode: decodeTokensResponse,
  });
}

export function refreshAccessToken(channel: GrpcChannel, refresh: Token): Promise<Token> {
  return call(channel, {
    path: methodPaths.refresh,
    request: encodeRefreshRequest(refresh.value),
    decode: decodeRefreshResponse,
  });
}

/** Settles with the time in milliseconds until the block engine forgets the subscriber. */
export function sendHeartbeat(
  channel: GrpcChannel,
  access: Token,
  heartbeat: Heartbeat,
): Promise<number> {
  return call(channel, {
    path: methodPaths.heartbeat,
    request: encodeHeartbeat(heartbeat),
    decode: decodeHeartbeatResponse,
    metadata: { authorization: `Bearer ${access.value}` },
  });
}

async function call<T>(
  channel: GrpcChannel,
  {
    decode,
    ...request
  }: {
    readonly path: string;
    readonly request: Uint8Array;
    readonly decode: (response: Uint8Array) => T;
    readonly metadata?: Readonly<Record<string, string>>;
  },
): Promise<T> {
  const response = await channel.call({ ...request, timeoutMs: callTimeoutMs });
  try {
    return decode(response);
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error;
    throw new GrpcError("INTERNAL", `invalid response: ${error.message}`);
  }
}
