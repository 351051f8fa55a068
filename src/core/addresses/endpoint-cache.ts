// Endpoint cache: parses the endpoints of a list once, for lists that are published again and again.
//
// Bounded: when it is full it is cleared, and the next list is parsed completely.

import { type Endpoint, formatEndpoint, parseEndpoint } from "./addresses.ts";

export interface KnownEndpoint extends Endpoint {
  /** Text of formatEndpoint, which is the same for every spelling of an endpoint. */
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

  /** Throws ShredwayError "address_invalid", also for port 0. */
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
