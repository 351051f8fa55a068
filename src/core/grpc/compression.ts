// Compressed messages of gRPC, as its specification calls them: one encoding for a call, named in its headers.
//
// Used by the server's side. Stock clients compress when their user selects an algorithm, whatever the server
// does. Responses are never compressed. The input is untrusted, and the output is bounded.

import type { IncomingHttpHeaders } from "node:http2";
import { gunzipSync, inflateSync } from "node:zlib";
import { messageOf } from "../errors.ts";
import { decompressZstd, ZstdError } from "../zstd/zstd.ts";
import { GrpcError } from "./status.ts";

/** Returns a message of at most `bytesMax` bytes. Throws GrpcError. */
export type Decompress = (compressed: Uint8Array, bytesMax: number) => Buffer;

const decoders: ReadonlyMap<string, Decompress> = new Map<string, Decompress>([
  ["gzip", (compressed, maxOutputLength) => gunzipSync(compressed, { maxOutputLength })],
  ["deflate", (compressed, maxOutputLength) => inflateSync(compressed, { maxOutputLength })],
  ["zstd", decompressZstd],
]);

/** Headers of every response. Clients learn from them which encodings they may use. */
export const responseHeaders = {
  ":status": 200,
  "content-type": "application/grpc",
  "grpc-accept-encoding": ["identity", ...decoders.keys()].join(","),
} as const;

/** Decompresses the messages of a call with these headers. */
export function decompressFor(headers: IncomingHttpHeaders): Decompress {
  const name = headers["grpc-encoding"] ?? "identity";
  return (compressed, bytesMax) => {
    if (name === "identity") {
      const detail = "expected an uncompressed message, because the call has no grpc-encoding";
      throw new GrpcError("INTERNAL", detail);
    }
    const decode = typeof name === "string" ? decoders.get(name) : undefined;
    if (!decode) {
      const known = [...decoders.keys()].join(", ");
      const detail = `grpc-encoding: expected ${known} or identity, got ${JSON.stringify(name).slice(0, 64)}`;
      throw new GrpcError("UNIMPLEMENTED", detail);
    }
    try {
      return decode(compressed, bytesMax);
    } catch (error) {
      throw refusalOf(error, { name: String(name), bytesMax });
    }
  };
}

function refusalOf(error: unknown, { name, bytesMax }: { name: string; bytesMax: number }) {
  const isTooLong = error instanceof ZstdError ? error.isTooLong : error instanceof RangeError;
  if (isTooLong) {
    const detail = `expected messages of at most ${bytesMax} bytes, got a longer one that is compressed`;
    return new GrpcError("RESOURCE_EXHAUSTED", detail);
  }
  return new GrpcError("INTERNAL", `expected a message in ${name}: ${messageOf(error)}`);
}
