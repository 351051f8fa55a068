// Messages between the soak test and its cluster process (cluster-process.ts), over the channel of fork().

import type { RestartOutcome } from "../../src/sandbox/chain/faults.ts";

export interface ClusterReady {
  readonly kind: "ready";
  readonly rpcUrl: string;
  /** Value of the key `routes` of the service's configuration. */
  readonly routes: readonly unknown[];
  readonly tipAddresses: readonly string[];
  readonly shredTipAddresses: readonly string[];
  readonly fundingKeyFile: string;
}

interface ClusterCount {
  readonly kind: "count";
  /** Datagrams of the source that loses nothing. */
  readonly sent: number;
  readonly slot: number;
}

interface ClusterDone {
  readonly kind: "done";
}

export type ClusterAnswer = ClusterReady | ClusterCount | ClusterDone;

export const partnerNames = ["swqos", "block-builder", "scheduler", "alt-partner"] as const;
export type PartnerName = (typeof partnerNames)[number];
export type PartnerAnswer = "normal" | "limit" | "unavailable" | "garbage" | "silence" | "cut";

export type ClusterCommand =
  /** Opens the sources, to the relay's address. The chain starts. */
  | { readonly do: "feed"; readonly to: string }
  /** Stops the sources once their queued datagrams have left. The chain goes on. */
  | { readonly do: "pause" }
  | { readonly do: "resume" }
  | { readonly do: "count" }
  | {
      readonly do: "partner";
      readonly name: PartnerName;
      readonly answer: PartnerAnswer;
      readonly delayMs: number;
    }
  | { readonly do: "partner-down"; readonly name: PartnerName; readonly isDown: boolean }
  | {
      readonly do: "node";
      readonly refuse: "nothing" | "behind" | "unavailable";
      readonly delayMs: number;
      readonly dropNotifications: boolean;
    }
  | { readonly do: "skip"; readonly slots: number }
  | { readonly do: "fork"; readonly slots: number }
  | { readonly do: "restart"; readonly outcome: RestartOutcome }
  /** Losses and forgeries of the other sources. */
  | { readonly do: "noise"; readonly loss: number; readonly forged: number };

export const soakSeed = 7;
/** Name of the key pair that pays for all transactions of the load. */
export const payerName = "soak payer";
