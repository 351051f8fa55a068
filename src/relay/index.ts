// The public interface of the package.

export {
  type AddressFamily,
  type AddressRange,
  type Endpoint,
  formatAddress,
  formatAddressRange,
  formatEndpoint,
  parseAddress,
  parseAddressRange,
  parseEndpoint,
} from "../core/addresses/addresses.ts";
export { type ErrorDetails, type Reason, ShredwayError } from "../core/errors.ts";
export type { Histogram } from "../core/log-linear-histogram.ts";
export {
  type Lamports,
  type Pubkey,
  parseLamports,
  parsePubkey,
  parseSlot,
  pubkeyBytes,
  pubkeyOf,
  type Slot,
} from "../core/primitives.ts";
export type { Landing, LandingReport } from "./data-plane/landings.ts";
export type {
  DeshredCounterName,
  SendFailureName,
  ShredRefusalReason,
  VerdictName,
} from "./data-plane/names.ts";
export type { PacedSenderCounts } from "./data-plane/native.ts";
export { PacedSender } from "./data-plane/paced-sender.ts";
export {
  type CodeShred,
  type DataShred,
  type ParsedShred,
  parseShred,
  type Shred,
  type ShredRefusal,
} from "./data-plane/parse-shred.ts";
export { Relay, type RelayEvent } from "./data-plane/relay.ts";
export type { RelayOptions } from "./data-plane/relay-options.ts";
export { Shredder, type ShredOptions, type SlotPosition } from "./data-plane/shredder.ts";
export type { RelaySnapshot } from "./data-plane/snapshot.ts";
export type { Destination, Source } from "./data-plane/tables.ts";
export {
  type LeaderSchedule,
  leaderOf,
  loadLeaderSchedule,
  parseLeaderSchedule,
} from "./leaders/schedule.ts";
