// Public exports of "shredway/client/quic", for Node.js only.

export { ShredwayCallError } from "../error.ts";
export type { TransactionInput } from "../types.ts";
export { connectQuic } from "./connect.ts";
export type {
  QuicClientOptions,
  QuicDialect,
  QuicEnd,
  QuicSendOptions,
  ServerIdentity,
} from "./options.ts";
export type { QuicClient } from "./quic-client.ts";
