// The messages in both roles, against bytes that the generated types of jito-ts 4.2.1 (npm) encoded.
//
// jito-ts-messages.json contains them in hex. The package itself would bring an old Solana library with it.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  decodeChallengeRequest,
  decodeChallengeResponse,
  decodeHeartbeat,
  decodeHeartbeatResponse,
  decodeRefreshRequest,
  decodeRefreshResponse,
  decodeTokensRequest,
  decodeTokensResponse,
  encodeChallengeRequest,
  encodeChallengeResponse,
  encodeHeartbeat,
  encodeHeartbeatResponse,
  encodeRefreshRequest,
  encodeRefreshResponse,
  encodeTokensRequest,
  encodeTokensResponse,
} from "../../../src/relay/shredstream/messages.ts";

const file = new URL("../../support/shredstream/jito-ts-messages.json", import.meta.url);
const stored: Readonly<Record<string, string>> = JSON.parse(readFileSync(file, "utf8"));

const publicKey = new Uint8Array(32).fill(7);
const signature = new Uint8Array(64).fill(9);
const tokens = {
  access: { value: "acc", expiresMs: Date.parse("2026-11-21T12:00:00.250Z") },
  refresh: { value: "ref", expiresMs: Date.parse("2026-11-22T12:00:00.000Z") },
};
const renewed = { value: "acc2", expiresMs: Date.parse("2026-11-21T12:30:00.000Z") };
const heartbeat = { ip: "192.0.2.7", port: 20_000n, regions: ["ny", "slc"] };

describe("messages of jito-ts", () => {
  it.each([
    ["challengeRequest", encodeChallengeRequest({ role: 3, publicKey })],
    ["challengeResponse", encodeChallengeResponse("c1")],
    ["tokensRequest", encodeTokensRequest({ challenge: "k-c1", publicKey, signature })],
    ["tokensResponse", encodeTokensResponse(tokens)],
    ["refreshRequest", encodeRefreshRequest("ref")],
    ["refreshResponse", encodeRefreshResponse(renewed)],
    ["heartbeat", encodeHeartbeat(heartbeat)],
    ["heartbeatResponse", encodeHeartbeatResponse(120_000)],
  ])("%s has the same bytes", (name, encoded) => {
    expect(Buffer.from(encoded).toString("hex")).toBe(stored[name]);
  });

  it.each<[string, (bytes: Uint8Array) => unknown, unknown]>([
    ["challengeRequest", decodeChallengeRequest, { role: 3, publicKey }],
    ["challengeResponse", decodeChallengeResponse, "c1"],
    ["tokensRequest", decodeTokensRequest, { challenge: "k-c1", publicKey, signature }],
    ["tokensResponse", decodeTokensResponse, tokens],
    ["refreshRequest", decodeRefreshRequest, "ref"],
    ["refreshResponse", decodeRefreshResponse, renewed],
    ["heartbeat", decodeHeartbeat, heartbeat],
    ["heartbeatResponse", decodeHeartbeatResponse, 120_000],
  ])("%s is read", (name, decode, value) => {
    expect(decode(Uint8Array.from(Buffer.from(stored[name] ?? "", "hex")))).toEqual(value);
  });
});
