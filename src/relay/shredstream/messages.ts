// Messages between a block engine and a subscriber of its shreds (Jito ShredStream), in both directions.
//
// Written from the facts of the protocol: services auth.AuthService and shredstream.Shredstream. Decoders
// throw ProtobufError or return empty values for absent fields, as proto3 defines.

import { MessageReader, MessageWriter, ProtobufError } from "../../core/grpc/protobuf.ts";

export const methodPaths = {
  challenge: "/auth.AuthService/GenerateAuthChallenge",
  tokens: "/auth.AuthService/GenerateAuthTokens",
  refresh: "/auth.AuthService/RefreshAccessToken",
  heartbeat: "/shredstream.Shredstream/SendHeartbeat",
} as const;

/** auth.Role.SHREDSTREAM_SUBSCRIBER */
export const subscriberRole = 3;

export interface ChallengeRequest {
  readonly role: number;
  readonly publicKey: Uint8Array;
}

export interface TokensRequest {
  /** The whole signed text, not only the challenge of the block engine. */
  readonly challenge: string;
  readonly publicKey: Uint8Array;
  readonly signature: Uint8Array;
}

export interface Token {
  readonly value: string;
  /** Unix time in milliseconds. */
  readonly expiresMs: number;
}

export interface Tokens {
  readonly access: Token;
  readonly refresh: Token;
}

export interface Heartbeat {
  readonly ip: string;
  readonly port: bigint;
  readonly regions: readonly string[];
}

/** The text that proves possession of the key. `address`: the public key in base58. */
export function challengeText(address: string, challenge: string): string {
  return `${address}-${challenge}`;
}

export function encodeChallengeRequest({ role, publicKey }: ChallengeRequest): Uint8Array {
  return new MessageWriter().uint(1, role).bytes(2, publicKey).finish();
}

export function decodeChallengeResponse(bytes: Uint8Array): string {
  return new MessageReader(bytes).string(1);
}

export function encodeTokensRequest(request: TokensRequest): Uint8Array {
  const { challenge, publicKey, signature } = request;
  return new MessageWriter().string(1, challenge).bytes(2, publicKey).bytes(3, signature).finish();
}

/** Throws ProtobufError if a token is missing or has no expiry. */
export function decodeTokensResponse(bytes: Uint8Array): Tokens {
  const reader = new MessageReader(bytes);
  return {
    access: tokenOf(reader.message(1), "access token"),
    refresh: tokenOf(reader.message(2), "refresh token"),
  };
}

export function encodeRefreshRequest(refreshToken: string): Uint8Array {
  return new MessageWriter().string(1, refreshToken).finish();
}

/** Throws ProtobufError if the token is missing or has no expiry. */
export function decodeRefreshResponse(bytes: Uint8Array): Token {
  return tokenOf(new MessageReader(bytes).message(1), "access token");
}

export function encodeHeartbeat({ ip, port, regions }: Heartbeat): Uint8Array {
  const socket = new MessageWriter().string(1, ip).uint(2, port).finish();
  return new MessageWriter().message(1, socket).strings(2, regions).finish();
}

/** Time in milliseconds until the block engine forgets the subscriber. */
export function decodeHeartbeatResponse(bytes: Uint8Array): number {
  return Number(BigInt.asUintN(32, new MessageReader(bytes).uint(1)));
}

export function decodeChallengeRequest(bytes: Uint8Array): ChallengeRequest {
  const reader = new MessageReader(bytes);
  return { role: Number(reader.uint(1)), publicKey: reader.bytes(2) };
}

export function encodeChallengeResponse(challenge: string): Uint8Array {
  return new MessageWriter().string(1, challenge).finish();
}

export function decodeTokensRequest(bytes: Uint8Array): TokensRequest {
  const reader = new MessageReader(bytes);
  return { challenge: reader.string(1), publicKey: reader.bytes(2), signature: reader.bytes(3) };
}

export function encodeTokensResponse({ access, refresh }: Tokens): Uint8Array {
  return new MessageWriter()
    .message(1, encodeToken(access))
    .message(2, encodeToken(refresh))
    .finish();
}

export function decodeRefreshRequest(bytes: Uint8Array): string {
  return new MessageReader(bytes).string(1);
}

export function encodeRefreshResponse(access: Token): Uint8Array {
  return new MessageWriter().message(1, encodeToken(access)).finish();
}

export function decodeHeartbeat(bytes: Uint8Array): Heartbeat {
  const reader = new MessageReader(bytes);
  const socket = reader.message(1);
  return {
    ip: socket?.string(1) ?? "",
    port: socket?.uint(2) ?? 0n,
    regions: reader.strings(2),
  };
}

export function encodeHeartbeatResponse(ttlMs: number): Uint8Array {
  return new MessageWriter().uint(1, ttlMs).finish();
}

function encodeToken({ value, expiresMs }: Token): Uint8Array {
  const seconds = Math.floor(expiresMs / 1000);
  const nanos = Math.floor((expiresMs % 1000) * 1e6);
  const expires = new MessageWriter().uint(1, seconds).uint(2, nanos).finish();
  return new MessageWriter().string(1, value).message(2, expires).finish();
}

function tokenOf(reader: MessageReader | undefined, what: string): Token {
  const value = reader?.string(1) ?? "";
  const expires = reader?.message(2);
  if (value === "") throw new ProtobufError(`the ${what} is missing`);
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new ProtobufError(`expected printable ASCII characters in the ${what}`);
  }
  if (!expires) throw new ProtobufError(`the ${what} has no expiry`);
  const seconds = BigInt.asIntN(64, expires.uint(1));
  return { value, expiresMs: Number(seconds) * 1000 + Number(expires.uint(2)) / 1e6 };
}
