// Rule of listeners: the service can open all of them. Reports the later of two that exclude each other.
//
// Called by the rules of TCP listeners, of the relay and of the QUIC ingress.

import type { Endpoint } from "../addresses/addresses.ts";
import { type Binding, excludeEachOther } from "../addresses/bound-endpoints.ts";

type Path = readonly (string | number)[];

export interface BoundListener {
  readonly path: Path;
  /** The key with the place in its list, as messages name it. */
  readonly place: string;
  readonly address: string;
  readonly endpoint: Endpoint;
}

interface BoundListeners {
  /** Opened first; another rule compares them with each other. */
  readonly earlier?: readonly BoundListener[];
  readonly own: readonly BoundListener[];
}

export function checkExclusion(
  { earlier = [], own }: BoundListeners,
  binding: Binding,
  report: (path: Path, message: string) => void,
): void {
  for (const [index, { path, address, endpoint }] of own.entries()) {
    const first = [...earlier, ...own.slice(0, index)].find((other) =>
      excludeEachOther(other.endpoint, endpoint, binding),
    );
    if (!first) continue;
    const also = `also ${first.place}${address === first.address ? "" : ` ${first.address}`}`;
    report(path, `duplicate address ${address} (${also}); expected different addresses`);
  }
}
