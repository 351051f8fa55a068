// The client's end of an open stream: a gRPC call, or a subscription on a WebSocket.
//
// Only types. core/grpc/grpc-stream.ts and socket-transport.ts implement it.

import type { GrpcStatus } from "../../core/grpc/status.ts";
import type { EndReason } from "./end-reasons.ts";

export interface StreamTransport {
  readonly isEnded: boolean;
  /** Why the connection ended, if its client was silent; else empty. */
  readonly silence: string;
  /** Why the stream ended, if a request of its client was invalid; else empty. */
  readonly refusal: string;
  /** Bytes and messages that wait for the client. */
  readonly waitingBytes: number;
  readonly waitingMessages: number;
  /** `listener` is called once, when the stream has ended on either side. */
  onClose(listener: () => void): void;
  /** `listener` is called after the kernel has got messages of `send`, with their number, oldest first. */
  onHandedOver(listener: (messages: number) => void): void;
  /** Queues one message. */
  send(message: Uint8Array): void;
  /** Gives queued messages to the connection. */
  flush(): void;
  end(status: GrpcStatus, detail: string, reason: EndReason): void;
}
