// Schemas of the notifications of decoded streams on WebSockets (docs/streams.md).
//
// relay/streams/socket-messages.ts writes them.

import {
  boolean,
  closed,
  closedOver,
  described,
  enumOf,
  type JsonSchema,
  listOf,
  orNull,
  publicKey,
  signatureText,
  slot,
  string,
  u64,
  wholeNumber,
  word,
} from "../../schema/json-schema.ts";

const byte = wholeNumber(0, 255);
const bytes = listOf(byte);
const version: JsonSchema = {
  description: "version of the transaction",
  oneOf: [word("legacy"), wholeNumber(0, 1)],
};
const hash = described("32 bytes in base58", publicKey);
const addresses = closed("LoadedAddresses", {
  writable: listOf(publicKey),
  readonly: listOf(publicKey),
});

const message = closedOver(
  "StreamTransactionMessage",
  {
    header: closed("StreamTransactionHeader", {
      numRequiredSignatures: byte,
      numReadonlySignedAccounts: byte,
      numReadonlyUnsignedAccounts: byte,
    }),
    accountKeys: listOf(publicKey),
    recentBlockhash: hash,
    instructions: listOf(
      closed("StreamInstruction", {
        programIdIndex: byte,
        accounts: bytes,
        data: described("base58", string),
        stackHeight: described("always 1", wholeNumber(1, 1)),
      }),
    ),
    addressTableLookups: listOf(
      closed("StreamLookup", {
        accountKey: publicKey,
        writableIndexes: bytes,
        readonlyIndexes: bytes,
      }),
    ),
    config: closedOver(
      "StreamTransactionConfig",
      {
        priorityFee: described("lamports", u64),
        computeUnitLimit: u64,
        loadedAccountsDataSizeLimit: described("bytes", u64),
        heapSize: described("bytes", u64),
      },
      new Set(["priorityFee", "computeUnitLimit", "loadedAccountsDataSizeLimit", "heapSize"]),
    ),
  },
  new Set(["addressTableLookups", "config"]),
);

const transaction = closedOver(
  "StreamTransaction",
  { signatures: listOf(signatureText), message },
  new Set(),
);
const context = closed("StreamContext", { slot });

function notificationOf(title: string, method: string, result: JsonSchema): JsonSchema {
  const none: ReadonlySet<string> = new Set();
  const subscription = described("number of the subscription", wholeNumber(0, 2 ** 53 - 1));
  const params = closedOver(`${title}Params`, { result, subscription }, none);
  return closedOver(title, { jsonrpc: word("2.0"), method: word(method), params }, none);
}

const shredTransaction = closedOver(
  "ShredTransaction",
  {
    context,
    value: closedOver(
      "ShredTransactionValue",
      {
        slot,
        signature: signatureText,
        transaction,
        version,
        loadedAddresses: described(
          "version 0 only; null: a lookup table is not resolved",
          orNull(addresses),
        ),
      },
      new Set(["loadedAddresses"]),
    ),
  },
  new Set(),
);

const shred = closedOver(
  "Shred",
  {
    signature: signatureText,
    slot,
    transaction: closedOver(
      "EncodedStreamTransaction",
      {
        transaction: {
          oneOf: [
            described("bytes and their encoding", listOf(string, { minItems: 2, maxItems: 2 })),
            transaction,
            closed("StreamTransactionAccounts", {
              signatures: listOf(signatureText),
              accountKeys: listOf(
                closed("StreamTransactionAccount", {
                  pubkey: publicKey,
                  signer: boolean,
                  writable: boolean,
                  source: enumOf(["transaction"]),
                }),
              ),
            }),
          ],
        },
        version,
      },
      new Set(),
    ),
  },
  new Set(["transaction"]),
);

const updateParent = closed("ShredUpdateParent", {
  context,
  value: closed("ShredUpdateParentValue", {
    slot,
    parentSlot: slot,
    parentBlockId: hash,
    updateParentFecSetIndex: wholeNumber(0, 2 ** 32 - 1),
    withdrawnSignatures: described(
      "received signatures that are no longer part of the block",
      listOf(signatureText),
    ),
  }),
});

/** A message of the service that is not a response. */
export const streamNotification: JsonSchema = {
  oneOf: [
    notificationOf(
      "ShredTransactionNotification",
      "shredTransactionNotification",
      shredTransaction,
    ),
    notificationOf("ShredNotification", "shredNotification", shred),
    notificationOf("ShredUpdateParentNotification", "shredUpdateParentNotification", updateParent),
  ],
};
