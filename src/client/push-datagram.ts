// Reads the datagrams of transaction pushes (docs/transaction-push.md), for receivers in JavaScript.
//
// Datagrams are untrusted: anyone can send one to a receiver. Compare `streamId` with the one of
// startTransactionPush.

const magic = 0x5854_5753; // "SWTX"
const headerBytes = 64;
const kinds = ["", "transaction", "withdrawal", "gap", "heartbeat", "end"] as const;

interface PushHead {
  /** 16 hex digits. */
  readonly streamId: string;
  /** A missing number is a lost datagram, or a message that the service dropped. */
  readonly sequence: bigint;
  /** 0: unknown. */
  readonly slot: bigint;
  /** Nanoseconds since 1970: receive time of the last shred of the message, or time of sending. */
  readonly timeNs: bigint;
  /** Transactions that were too long for a datagram, since the start of the push; modulo 2^32. */
  readonly skipped: number;
  /** Messages that the service could not send, the same way. */
  readonly dropped: number;
}

export interface PushedTransaction extends PushHead {
  readonly kind: "transaction";
  readonly isVote: boolean;
  readonly version: "legacy" | 0 | 1;
  /** Addresses from lookup tables that the filter saw; null: the transaction has no lookups. */
  readonly lookups: "resolved" | "unresolved" | null;
  /** The data shred that completed it. */
  readonly shredIndex: number;
  /** The first data shred of its batch, and the position in the batch. */
  readonly batchIndex: number;
  readonly ordinal: number;
  /** Wire format; a view of the datagram. */
  readonly transaction: Uint8Array;
}

/** Everything in the slot whose `batchIndex` is lower is abandoned. */
export interface PushedWithdrawal extends PushHead {
  readonly kind: "withdrawal";
  readonly batchIndex: number;
  readonly parentSlot: bigint;
  /** 32 bytes. */
  readonly parentBlockId: Uint8Array;
}

/** The service could not send `count` messages, in these slots (0: unknown). */
export interface PushedGap extends PushHead {
  readonly kind: "gap";
  readonly count: bigint;
  readonly firstSlot: bigint;
  readonly lastSlot: bigint;
}

export interface PushedHeartbeat extends PushHead {
  readonly kind: "heartbeat";
  /** Nanoseconds since 1970: end of the lease. */
  readonly endsNs: bigint;
}

export interface PushedEnd extends PushHead {
  readonly kind: "end";
  /** "reason: explanation". */
  readonly text: string;
}

export type PushDatagram =
  | PushedTransaction
  | PushedWithdrawal
  | PushedGap
  | PushedHeartbeat
  | PushedEnd;

/** Returns null for every other datagram, such as a shred or an ownership challenge. */
export function readPushDatagram(bytes: Uint8Array): PushDatagram | null {
  if (bytes.length < headerBytes) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint32(0, true) !== magic || view.getUint8(4) !== 1) return null;
  const begin = view.getUint16(60, true);
  const end = begin + view.getUint16(62, true);
  if (begin < headerBytes || end !== bytes.length) return null;
  const head: PushHead = {
    streamId: Array.from(bytes.subarray(8, 16), (byte) => byte.toString(16).padStart(2, "0")).join(
      "",
    ),
    sequence: view.getBigUint64(16, true),
    slot: view.getBigUint64(24, true),
    timeNs: view.getBigUint64(32, true),
    skipped: view.getUint32(52, true),
    dropped: view.getUint32(56, true),
  };
  const payload = bytes.subarray(begin, end);
  return contentOf(head, kinds[view.getUint8(5)] ?? "", { view, payload, begin });
}

interface Content {
  readonly view: DataView;
  readonly payload: Uint8Array;
  /** Offset of the payload. */
  readonly begin: number;
}

function contentOf(
  head: PushHead,
  kind: (typeof kinds)[number],
  { view, payload, begin }: Content,
): PushDatagram | null {
  const batchIndex = view.getUint32(44, true);
  const isShort = payload.length < payloadBytesMin[kind];
  if (isShort || kind === "") return null;
  const numberAt = (offset: number) => view.getBigUint64(begin + offset, true);
  switch (kind) {
    case "transaction": {
      const place = {
        shredIndex: view.getUint32(40, true),
        batchIndex,
        ordinal: view.getUint32(48, true),
      };
      return { ...head, kind, ...flagsOf(view.getUint16(6, true)), ...place, transaction: payload };
    }
    case "withdrawal": {
      const parentBlockId = payload.subarray(8, 40);
      return { ...head, kind, batchIndex, parentSlot: numberAt(0), parentBlockId };
    }
    case "gap":
      return { ...head, kind, count: numberAt(0), firstSlot: numberAt(8), lastSlot: numberAt(16) };
    case "heartbeat":
      return { ...head, kind, endsNs: numberAt(0) };
    case "end":
      return { ...head, kind, text: new TextDecoder().decode(payload) };
  }
}

const payloadBytesMin: Readonly<Record<(typeof kinds)[number], number>> = {
  "": 0,
  transaction: 1,
  withdrawal: 40,
  gap: 24,
  heartbeat: 8,
  end: 0,
};

function flagsOf(flags: number): Pick<PushedTransaction, "isVote" | "version" | "lookups"> {
  return {
    isVote: (flags & 1) !== 0,
    version: (flags & 4) !== 0 ? 1 : (flags & 2) !== 0 ? 0 : "legacy",
    lookups: (flags & 8) !== 0 ? "resolved" : (flags & 16) !== 0 ? "unresolved" : null,
  };
}
