// The names of filters, encoded once for all messages that carry them.
//
// Subscribers whose filters have the same name share one object, so that encoders find equal messages by
// identity.

import { MessageWriter } from "../../core/grpc/protobuf.ts";

export interface FilterName {
  /** Field 1 of an update, in all gRPC dialects. Fields of several names follow each other. */
  readonly field: Uint8Array;
}

/** A name that no other subscriber shares. */
export function filterNameOf(text: string): FilterName {
  return { field: new MessageWriter().strings(1, [text]).finish() };
}

/** Names of filters in use. */
export class FilterNames {
  readonly #names = new Map<string, { readonly name: FilterName; uses: number }>();

  /** `release` follows once. */
  use(text: string): FilterName {
    const known = this.#names.get(text);
    if (known) {
      known.uses++;
      return known.name;
    }
    const name = filterNameOf(text);
    this.#names.set(text, { name, uses: 1 });
    return name;
  }

  release(text: string): void {
    const known = this.#names.get(text);
    if (known && --known.uses === 0) this.#names.delete(text);
  }
}
