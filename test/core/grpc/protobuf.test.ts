// The codec against protobufjs: every message in both directions, and malformed bytes.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MessageReader, MessageWriter, ProtobufError } from "../../../src/core/grpc/protobuf.ts";
import {
  decodeChallengeResponse,
  decodeHeartbeatResponse,
  decodeRefreshResponse,
  decodeTokensResponse,
  encodeChallengeRequest,
  encodeHeartbeat,
  encodeRefreshRequest,
  encodeTokensRequest,
} from "../../../src/relay/shredstream/messages.ts";
import { blockEngineMessages } from "../../support/shredstream/test-block-engine.ts";

const root = blockEngineMessages();

const encoded = (type: string, value: object): Uint8Array => {
  const message = root.lookupType(type);
  return message.encode(message.fromObject(value)).finish();
};
const decoded = (type: string, bytes: Uint8Array): unknown => {
  const message = root.lookupType(type);
  return message.toObject(message.decode(bytes), { longs: Number, defaults: true, bytes: Array });
};

describe("messages of a block engine", () => {
  it("encodes requests as protobufjs decodes them", () => {
    const publicKey = new Uint8Array(32).fill(5);
    const pubkey = [...publicKey];
    expect(
      decoded("auth.GenerateAuthChallengeRequest", encodeChallengeRequest({ role: 3, publicKey })),
    ).toEqual({ role: 3, pubkey });
    const signature = new Uint8Array(64).fill(6);
    const tokens = encodeTokensRequest({ challenge: "key-text", publicKey, signature });
    expect(decoded("auth.GenerateAuthTokensRequest", tokens)).toEqual({
      challenge: "key-text",
      client_pubkey: pubkey,
      signed_challenge: [...signature],
    });
    expect(decoded("auth.RefreshAccessTokenRequest", encodeRefreshRequest("r"))).toEqual({
      refresh_token: "r",
    });
    const heartbeat = { ip: "192.0.2.1", port: 20_000n, regions: ["ny", "", "slc"] };
    expect(decoded("shredstream.Heartbeat", encodeHeartbeat(heartbeat))).toEqual({
      socket: { ip: "192.0.2.1", port: 20_000 },
      regions: ["ny", "", "slc"],
    });
  });

  it("decodes responses that protobufjs encodes", () => {
    const token = (value: string, seconds: number) => ({
      value,
      expires_at_utc: { seconds, nanos: 500_000_000 },
    });
    expect(
      decodeChallengeResponse(encoded("auth.GenerateAuthChallengeResponse", { challenge: "abc" })),
    ).toBe("abc");
    const both = { access_token: token("a", 10), refresh_token: token("b", -1) };
    expect(decodeTokensResponse(encoded("auth.GenerateAuthTokensResponse", both))).toEqual({
      access: { value: "a", expiresMs: 10_500 },
      refresh: { value: "b", expiresMs: -500 },
    });
    const { access_token } = both;
    expect(
      decodeRefreshResponse(encoded("auth.RefreshAccessTokenResponse", { access_token })),
    ).toEqual({ value: "a", expiresMs: 10_500 });
    const ttl = encoded("shredstream.HeartbeatResponse", { ttl_ms: 4_294_967_295 });
    expect(decodeHeartbeatResponse(ttl)).toBe(4_294_967_295);
    expect(decodeHeartbeatResponse(new Uint8Array())).toBe(0);
  });

  it.each([
    [{}, "access token is missing"],
    [{ access_token: { value: "a" } }, "access token has no expiry"],
    [{ access_token: { expires_at_utc: {} } }, "access token is missing"],
    [{ access_token: { value: "a\nb", expires_at_utc: {} } }, "printable ASCII"],
    [{ access_token: { value: "a", expires_at_utc: {} } }, "refresh token is missing"],
  ])("rejects incomplete tokens", (value, message) => {
    const bytes = encoded("auth.GenerateAuthTokensResponse", value);
    expect(() => decodeTokensResponse(bytes)).toThrow(message);
  });
});

describe("MessageReader", () => {
  it("reads what MessageWriter writes", () => {
    const any = fc.record({
      text: fc.string(),
      bytes: fc.uint8Array(),
      number: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      list: fc.array(fc.string()),
    });
    fc.assert(
      fc.property(any, ({ text, bytes, number, list }) => {
        const inner = new MessageWriter().string(1, text).uint(2, number).finish();
        const all = new MessageWriter()
          .bytes(1, bytes)
          .message(20, inner)
          .strings(3, list)
          .finish();
        const reader = new MessageReader(all);
        expect(Array.from(reader.bytes(1))).toEqual(Array.from(bytes));
        expect(reader.strings(3)).toEqual(list);
        expect(reader.message(20)?.string(1)).toBe(Buffer.from(text).toString());
        expect(reader.message(20)?.uint(2)).toBe(number);
        expect(reader.message(21)).toBeUndefined();
      }),
    );
  });

  it("rejects malformed bytes with ProtobufError and nothing else", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          const reader = new MessageReader(bytes);
          reader.strings(1);
          reader.message(2)?.uint(1);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtobufError);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ["a field number of 0", [0x02, 0x00], "invalid field number"],
    ["a length beyond the end", [0x0a, 0x7f, 0x00], "ends inside a field"],
    ["an endless number", Array(11).fill(0xff), "longer than 10 bytes"],
    ["a group", [0x0b], "unknown wire type 3"],
    ["text that is not UTF-8", [0x0a, 0x01, 0xff], "expected UTF-8 text"],
    ["a number instead of text", [0x08, 0x01], "expected bytes, got an integer"],
    ["too many fields", Array(2 * 4097).fill(0x08), "more than 4096 fields"],
  ])("rejects %s", (_, bytes, message) => {
    expect(() => new MessageReader(Uint8Array.from(bytes)).string(1)).toThrow(message);
  });

  it("skips unknown fields and merges a repeated message", () => {
    const part = (value: Uint8Array) => new MessageWriter().message(2, value).finish();
    const bytes = Buffer.concat([
      Uint8Array.from([0x0d, 1, 2, 3, 4, 0x19, 1, 2, 3, 4, 5, 6, 7, 8]),
      part(new MessageWriter().string(1, "a").finish()),
      part(new MessageWriter().uint(2, 7).finish()),
    ]);
    const merged = new MessageReader(bytes).message(2);
    expect([merged?.string(1), merged?.uint(2)]).toEqual(["a", 7n]);
  });
});
