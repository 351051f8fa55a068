// Address lookup tables of the relay: passes on what a node knows, and reads which tables are needed.
//
// A typed wrapper of native/stream/lookup_resolver.h, one per relay. The deshred thread resolves the
// addresses of transactions with these tables.

import { guarded, type NativeRelay } from "./native.ts";

/** The content of a table. */
export interface LookupTableContent {
  /** At most 256, of 32 bytes each. */
  readonly addresses: readonly Uint8Array[];
  /** Slot of the last extension, which transactions can use from the next slot on. */
  readonly extendedSlot: bigint;
  /** Index of the first address that it added. */
  readonly extensionBegin: number;
}

interface LookupTableChange {
  /** 32 bytes. */
  readonly table: Uint8Array;
  /** null: the table does not exist (any more). */
  readonly content: LookupTableContent | null;
  /** Slot of its last use, as far as known: beyond the limits, the oldest ones are evicted. */
  readonly usedSlot: bigint;
}

export interface LookupReport {
  readonly table: Uint8Array;
  readonly slot: bigint;
  /** true: an instruction names the table; false: a transaction needs addresses that are unknown. */
  readonly isChange: boolean;
}

export interface LookupTableCounts {
  readonly tables: number;
  readonly addresses: number;
  /** Tables that were evicted since the start. */
  readonly evicted: number;
}

const reportBytes = 48;
const reportsPerCall = 256;
const changeBytes = 56;
const addressBytes = 32;

type LookupCalls = Pick<
  NativeRelay,
  "changeLookupTables" | "drainLookupReports" | "lookupTableCounts"
>;

export class RelayLookupTables {
  readonly #native: LookupCalls;
  readonly #buffer = new Uint8Array(reportsPerCall * reportBytes);

  constructor(native: LookupCalls) {
    this.#native = native;
  }

  /** At most 256 changes; all or nothing. Throws ShredwayError "table_refused". */
  apply(changes: readonly LookupTableChange[]): void {
    const head = Buffer.alloc(8);
    head.write("SWL1", "latin1");
    head.writeUInt32LE(changes.length, 4);
    const bytes = Buffer.concat([head, ...changes.flatMap(encodeChange)]);
    guarded("table_refused", () => this.#native.changeLookupTables(bytes));
  }

  /** The reports that wait, oldest first; at most 256. */
  reports(): LookupReport[] {
    const buffer = this.#buffer;
    const count = this.#native.drainLookupReports(buffer);
    const view = new DataView(buffer.buffer);
    return Array.from({ length: count }, (_, i) => {
      const at = i * reportBytes;
      return {
        table: buffer.slice(at, at + addressBytes),
        slot: view.getBigUint64(at + 32, true),
        isChange: view.getBigUint64(at + 40, true) !== 0n,
      };
    });
  }

  counts(): LookupTableCounts {
    return this.#native.lookupTableCounts();
  }
}

function encodeChange({ table, content, usedSlot }: LookupTableChange): Uint8Array[] {
  const { addresses = [], extendedSlot = 0n, extensionBegin = 0 } = content ?? {};
  if ([table, ...addresses].some(({ length }) => length !== addressBytes)) {
    throw new RangeError("expected a table and addresses of 32 bytes");
  }
  const head = Buffer.alloc(changeBytes);
  head.set(table, 0);
  head.writeBigUInt64LE(usedSlot, 32);
  head.writeBigUInt64LE(extendedSlot, 40);
  head.writeUInt16LE(extensionBegin, 48);
  head.writeUInt16LE(addresses.length, 50);
  head.writeUInt8(content ? 0 : 1, 52);
  return [head, ...addresses];
}
