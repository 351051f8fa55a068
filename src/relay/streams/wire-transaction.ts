// The parts of a transaction in wire format, as views of its bytes.
//
// Pure. Meant for bytes that the native parser accepted (native/transaction/wire.h has the format), so that
// every length is valid. Reads legacy, v0 and v1.

import { WireReader } from "../../core/transactions/wire-reader.ts";

interface WireInstruction {
  readonly program: number;
  /** Indexes of accounts. */
  readonly accounts: Uint8Array;
  readonly data: Uint8Array;
}

interface WireLookup {
  readonly table: Uint8Array;
  readonly writable: Uint8Array;
  readonly readonly: Uint8Array;
}

/** Values that a v1 transaction requests; undefined: not requested. */
interface WireConfig {
  readonly priorityFee: bigint | undefined;
  readonly computeUnitLimit: number | undefined;
  readonly loadedAccountsDataSizeLimit: number | undefined;
  readonly heapSize: number | undefined;
}

export interface WireTransaction {
  readonly version: "legacy" | 0 | 1;
  readonly signatures: readonly Uint8Array[];
  /** Required signatures, read-only signed accounts, read-only unsigned accounts. */
  readonly header: readonly [number, number, number];
  readonly keys: readonly Uint8Array[];
  /** Recent blockhash or the value of a durable nonce. */
  readonly lifetime: Uint8Array;
  readonly instructions: readonly WireInstruction[];
  readonly lookups: readonly WireLookup[];
  /** v1 only. */
  readonly config: WireConfig | undefined;
}

const keyBytes = 32;
const signatureBytes = 64;
const v0Prefix = 0x80;
const v1Prefix = 0x81;

function headerIn(reader: WireReader, first: number): [number, number, number] {
  return [first, reader.byte(), reader.byte()];
}

export function readWireTransaction(bytes: Uint8Array): WireTransaction {
  return readTransaction(new WireReader(bytes));
}

/** Reads the next transaction of several. Throws RangeError if the bytes end before it. */
export function readTransaction(reader: WireReader): WireTransaction {
  return reader.peek() === v1Prefix ? readV1(reader) : readLegacyOrV0(reader);
}

function readLegacyOrV0(reader: WireReader): WireTransaction {
  const signatures = reader.times(reader.compact(), () => reader.take(signatureBytes));
  const first = reader.byte();
  const isV0 = first === v0Prefix;
  const header = headerIn(reader, isV0 ? reader.byte() : first);
  const keys = reader.times(reader.compact(), () => reader.take(keyBytes));
  const lifetime = reader.take(keyBytes);
  const instructions = reader.times(reader.compact(), () => ({
    program: reader.byte(),
    accounts: reader.compactBytes(),
    data: reader.compactBytes(),
  }));
  const lookups = reader.times(isV0 ? reader.compact() : 0, () => ({
    table: reader.take(keyBytes),
    writable: reader.compactBytes(),
    readonly: reader.compactBytes(),
  }));
  const version = isV0 ? 0 : "legacy";
  return { version, signatures, header, keys, lifetime, instructions, lookups, config: undefined };
}

function readV1(reader: WireReader): WireTransaction {
  reader.byte();
  const header = headerIn(reader, reader.byte());
  const mask = Number(reader.uint(4));
  const lifetime = reader.take(keyBytes);
  const instructionCount = reader.byte();
  const keys = reader.times(reader.byte(), () => reader.take(keyBytes));
  const config = readConfig(reader, mask);
  const heads = reader.times(instructionCount, () => ({
    program: reader.byte(),
    accountCount: reader.byte(),
    dataBytes: Number(reader.uint(2)),
  }));
  const instructions = heads.map(({ program, accountCount, dataBytes }) => ({
    program,
    accounts: reader.take(accountCount),
    data: reader.take(dataBytes),
  }));
  const signatures = reader.times(header[0], () => reader.take(signatureBytes));
  return { version: 1, signatures, header, keys, lifetime, instructions, lookups: [], config };
}

/** Four bytes for each bit of the mask; two bits belong to the priority fee. */
function readConfig(reader: WireReader, mask: number): WireConfig {
  const words: (bigint | undefined)[] = [];
  for (let bit = 0; bit < 32; bit++) {
    words.push(((mask >>> bit) & 1) === 1 ? reader.uint(4) : undefined);
  }
  const [low, high, ...others] = words;
  const [computeUnitLimit, loadedAccountsDataSizeLimit, heapSize] = others.map((word) =>
    word === undefined ? undefined : Number(word),
  );
  const hasFee = low !== undefined || high !== undefined;
  return {
    priorityFee: hasFee ? ((high ?? 0n) << 32n) | (low ?? 0n) : undefined,
    computeUnitLimit,
    loadedAccountsDataSizeLimit,
    heapSize,
  };
}
