// Public exports of "shredway/client".

export { ShredwayClient } from "./client.ts";
export { clientReasons, ShredwayCallError } from "./error.ts";
export type { KeepAlive, KeepAliveOptions } from "./keep-alive.ts";
export type {
  GetReceiptOptions,
  RegisterTipsOptions,
  SendAltOptions,
  SendBatchOptions,
  SendBundleOptions,
  SendPairOptions,
  SendTransactionOptions,
  ShredwayClientOptions,
  TipAccountOptions,
  TransactionPushOptions,
} from "./options.ts";
export { publicKeyProofMessage } from "./public-key-proof.ts";
export * from "./push-datagram.ts";
export { verifyReceipt, verifyTipFloor, verifyTipHistory } from "./receipts.ts";
export type { SigningKeys } from "./signed-statement.ts";
export type { SocketConstructor, SocketLike } from "./socket.ts";
export type { WaitOptions, WatchOptions } from "./status-watch.ts";
export { tipProofMessage } from "./tip-proof.ts";
export type { CallOptions } from "./transport.ts";
export type * from "./types.ts";
