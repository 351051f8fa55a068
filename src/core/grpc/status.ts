// gRPC: status codes, the error of a failed call, and the framing of messages.
//
// Used by both sides of a call. A message is one byte (compressed or not), its length as u32 in network
// byte order, and its bytes.

/** Codes by number, as in the specification of gRPC. */
const grpcStatusNames = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;
export type GrpcStatus = (typeof grpcStatusNames)[number];

/** Characters of a remote message that are shown. */
const detailMax = 300;

/** A failed call. `detail` is bounded and has no control characters. */
export class GrpcError extends Error {
  readonly status: GrpcStatus;
  readonly detail: string;

  constructor(status: GrpcStatus, detail: string) {
    const shown = printable(detail);
    super(`${status}: ${shown}`);
    this.status = status;
    this.detail = shown;
  }
}

function printable(text: string): string {
  const clean = text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+/gu, " ").trim();
  if (clean === "") return "no message";
  if (clean.length <= detailMax) return clean;
  // The cut may divide a surrogate pair.
  return `${clean.slice(0, detailMax).replace(/\p{Cs}$/u, "")}…`;
}

/** The status that an HTTP status stands for, if the response has no gRPC status. */
export function statusOfHttp(httpStatus: number): GrpcStatus {
  switch (httpStatus) {
    case 400:
      return "INTERNAL";
    case 401:
      return "UNAUTHENTICATED";
    case 403:
      return "PERMISSION_DENIED";
    case 404:
      return "UNIMPLEMENTED";
    case 429:
    case 502:
    case 503:
    case 504:
      return "UNAVAILABLE";
    default:
      return "UNKNOWN";
  }
}

export function numberOfStatus(status: GrpcStatus): number {
  return grpcStatusNames.indexOf(status);
}

export function statusOfNumber(text: string): GrpcStatus {
  return (/^\d{1,2}$/.test(text) ? grpcStatusNames[Number(text)] : undefined) ?? "UNKNOWN";
}

/** Decodes the percent encoding of grpc-message; a malformed text is returned as it is. */
export function decodeGrpcMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Percent encoding of "%" and of everything except printable ASCII, as the specification of gRPC requires.
 * Half of a surrogate pair has no encoding in UTF-8 and becomes the replacement character.
 */
export function encodeGrpcMessage(text: string): string {
  return text
    .replaceAll(/\p{Cs}/gu, "\ufffd")
    .replaceAll(/[^\x20-\x24\x26-\x7e]/gu, encodeURIComponent);
}

export const frameHeaderBytes = 5;

/** `parts`: of one message. */
export function frameMessage(...parts: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const part of parts) length += part.length;
  const framed = Buffer.allocUnsafe(frameHeaderBytes + length);
  framed.writeUInt8(0, 0);
  framed.writeUInt32BE(length, 1);
  let at = frameHeaderBytes;
  for (const part of parts) {
    framed.set(part, at);
    at += part.length;
  }
  return framed;
}

/** The single message of a call without streaming. Absent `decompress`: it must not be compressed. Throws GrpcError. */
export function unframeMessage(body: Buffer, decompress?: (body: Buffer) => Buffer): Buffer {
  if (body.length < frameHeaderBytes) {
    throw new GrpcError("INTERNAL", `expected one message, got ${body.length} bytes`);
  }
  const isCompressed = body.readUInt8(0) !== 0;
  if (isCompressed && !decompress) {
    throw new GrpcError("UNIMPLEMENTED", "expected an uncompressed message, got a compressed one");
  }
  const length = body.readUInt32BE(1);
  if (body.length !== frameHeaderBytes + length) {
    throw new GrpcError(
      "INTERNAL",
      `expected one message of ${length} bytes, got ${body.length - frameHeaderBytes} bytes`,
    );
  }
  const message = body.subarray(frameHeaderBytes);
  return isCompressed && decompress ? decompress(message) : message;
}
