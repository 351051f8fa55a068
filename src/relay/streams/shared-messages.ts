// Framed messages that subscribers of one dialect share.
//
// A message of the relay is encoded for the first subscriber that needs it. Subscribers whose matching
// filter has the same name also share the framed bytes.

import { frameMessage } from "../../core/grpc/status.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import type { FilterName } from "./filter-names.ts";

export class SharedMessages {
  readonly #encode: (message: StreamMessage) => Uint8Array;
  #message: StreamMessage | undefined;
  #rest: Uint8Array = new Uint8Array();
  readonly #framed = new Map<FilterName, Buffer>();

  /** `encode`: all fields of an update but the names of the filters. */
  constructor(encode: (message: StreamMessage) => Uint8Array) {
    this.#encode = encode;
  }

  /** The framed update with these names. */
  framed(message: StreamMessage, names: readonly FilterName[]): Buffer {
    if (this.#message !== message) {
      this.#rest = this.#encode(message);
      this.#message = message;
      this.#framed.clear();
    }
    const [name] = names;
    if (!name || names.length > 1) {
      return frameMessage(...names.map(({ field }) => field), this.#rest);
    }
    let framed = this.#framed.get(name);
    if (!framed) {
      framed = frameMessage(name.field, this.#rest);
      this.#framed.set(name, framed);
    }
    return framed;
  }
}
