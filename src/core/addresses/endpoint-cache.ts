// Endpoints by their text, parsed once: for lists that come again and again with the same addresses.
//
// Owned by who publishes such lists (data-plane/relay.ts, service/destination-table.ts). Bounded: when
// it is full it begins anew, which costs one list the time that every list would cost without it.

import { type Endpoint, formatEndpoint, parseEndpoint } from "./addresses.ts";

export interface KnownEndpoint extends Endpoint {
  /** As formatEndpoint writes it: the same for every spelling of one endpoint. */
  readonly canonical: string;
}

export class EndpointCache {
  readonly #max: number;
  readonly #known = new Map<string, KnownEndpoint>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#known.size;
  }

  /** Throws ShredwayError "address_invalid". Port 0 is none. */
  get(text: string): KnownEndpoint {
    const known = this.#known.get(text);
    if (known) return known;
    const endpoint = parseEndpoint(text);
    const parsed = { ...endpoint, canonical: formatEndpoint(endpoint) };
    if (this.#known.size >= this.#max) this.#known.clear();
    this.#known.set(text, parsed);
    return parsed;
  }
}
