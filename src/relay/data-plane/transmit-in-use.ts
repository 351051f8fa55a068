// The transmit mode that a relay uses, and why it is not the requested one.

import type { NativeRelay } from "./native.ts";

/** How datagrams leave the machine. */
export type TransmitInUse =
  /** `interface`: that of the clones, or those of AF_XDP and how they send: "eth1 (zero-copy)". */
  | { readonly mode: "clone" | "xdp"; readonly interface: string }
  /** `refusal`: why clones are not in use, and how to enable them; null: they were not requested. */
  | { readonly mode: "socket"; readonly refusal: string | null };

export function readTransmit(relay: NativeRelay): TransmitInUse {
  const { mode, interface: name, refusal } = relay.transmit();
  if (mode !== "socket") return { mode, interface: name };
  return { mode, refusal: refusal === "" ? null : refusal };
}
