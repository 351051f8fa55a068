// Messages of the dialects on WebSockets: notifications in JSON-RPC.
//
// Parts that several subscriptions share are encoded once for each message of the relay.

import { writeJson } from "../../core/json-rpc/json-text.ts";
import { encodeBase58 } from "../data-plane/base58.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import type { SocketSubscription } from "./socket-parameters.ts";
import { accountsJson, transactionJson } from "./transaction-json.ts";
import { readWireTransaction, type WireTransaction } from "./wire-transaction.ts";

/** Announces an update-parent marker, in both dialects. */
const updateParentMethod = "shredUpdateParentNotification";

/** Encodes the transactions of messages; the texts are shared until the next message. */
export class SocketEncoder {
  #message: StreamMessage | undefined;
  #transaction: WireTransaction | undefined;
  readonly #texts = new Map<string, string>();

  /** The first signature in base58. */
  signature(message: StreamMessage): string {
    return this.#text(message, "signature", ({ signatures: [first] }) =>
      encodeBase58(first ?? new Uint8Array()),
    );
  }

  /** The text of `result` of a notification; undefined: the client supports no such transactions. */
  result(message: StreamMessage, subscription: SocketSubscription): string | undefined {
    if (subscription.dialect === "shred_transaction") {
      return this.#text(message, "shred_transaction", () => this.#value(message));
    }
    const { versionMax, details, encoding } = subscription;
    const { version } = this.#read(message);
    if (versionMax !== null && version !== "legacy" && version > versionMax) return undefined;
    return this.#text(message, `${details} ${encoding}`, (transaction) => {
      const head = `"signature":"${this.signature(message)}","slot":${message.slot}`;
      if (details === "signatures") return `{${head}}`;
      const body =
        details === "accounts" ? accountsJson(transaction) : bodyOf(message, transaction, encoding);
      const inner = `{"transaction":${body},"version":${writeJson(version)}}`;
      return `{${head},"transaction":${inner}}`;
    });
  }

  #value(message: StreamMessage): string {
    const transaction = this.#read(message);
    const { slot } = message;
    const loaded = loadedAddresses(transaction, message);
    const value =
      `"slot":${slot},"signature":"${this.signature(message)}","transaction":${transactionJson(transaction)}` +
      `,"version":${writeJson(transaction.version)}`;
    const last = loaded === undefined ? "" : `,"loadedAddresses":${loaded}`;
    return `{"context":{"slot":${slot}},"value":{${value}${last}}}`;
  }

  #text(
    message: StreamMessage,
    key: string,
    write: (transaction: WireTransaction) => string,
  ): string {
    const transaction = this.#read(message);
    let text = this.#texts.get(key);
    if (text === undefined) {
      text = write(transaction);
      this.#texts.set(key, text);
    }
    return text;
  }

  #read(message: StreamMessage): WireTransaction {
    if (this.#message !== message || !this.#transaction) {
      this.#message = message;
      this.#transaction = readWireTransaction(message.content);
      this.#texts.clear();
    }
    return this.#transaction;
  }
}

function bodyOf(
  { content }: StreamMessage,
  transaction: WireTransaction,
  encoding: "base58" | "base64" | "json",
): string {
  if (encoding === "json") return transactionJson(transaction);
  const bytes = encoding === "base58" ? encodeBase58(content) : base64Of(content);
  return `["${bytes}","${encoding}"]`;
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
}

/** undefined: the version has no lookups; "null": the addresses are unknown. */
function loadedAddresses(
  { version }: WireTransaction,
  { loadedAddresses: loaded }: StreamMessage,
): string | undefined {
  if (version !== 0) return undefined;
  if (loaded === null) return "null";
  const { writable = [], readonly = [] } = loaded ?? {};
  return writeJson({ writable: writable.map(encodeBase58), readonly: readonly.map(encodeBase58) });
}

/** `result`: JSON text. */
export function notificationOf(method: string, id: number, result: string): Buffer {
  return Buffer.from(
    `{"jsonrpc":"2.0","method":"${method}","params":{"result":${result},"subscription":${id}}}`,
  );
}

/** The notification of an update-parent marker, with the signatures that it withdraws. */
export function updateParentOf(
  message: StreamMessage,
  id: number,
  withdrawn: readonly string[],
): Buffer {
  const { slot, parent, batchIndex, content } = message;
  const result = writeJson({
    context: { slot },
    value: {
      slot,
      parentSlot: parent,
      parentBlockId: encodeBase58(content),
      updateParentFecSetIndex: batchIndex,
      withdrawnSignatures: withdrawn,
    },
  });
  return notificationOf(updateParentMethod, id, result);
}
