// Connect probe: finds out whether a partner accepts connections, without sending it anything.
//
// partner-endpoint.ts runs it when a route opens, and while the route is idle. It makes a TCP connection and
// a TLS handshake of its own and closes them, so that it neither costs anything at the partner nor delays a
// transaction.

import { codeOf, messageOf } from "../../core/errors.ts";
import { connectReason } from "./partner-connection.ts";
import type { PartnerNetwork } from "./partner-network.ts";

/** `failure`: reason and text; null: the partner accepts connections. The text may contain secrets. */
type ProbeListener = (failure: string | null) => void;

interface ProbeTarget {
  readonly url: URL;
  readonly timeoutMs: number;
  readonly network: PartnerNetwork;
}

export class ConnectProbe {
  readonly #target: ProbeTarget;
  readonly #listener: ProbeListener;
  #attempt: ReturnType<PartnerNetwork["probe"]> | undefined;
  #isRunning = false;

  constructor(target: ProbeTarget, listener: ProbeListener) {
    this.#target = target;
    this.#listener = listener;
  }

  /** Connects; the listener is called once, unless `cancel` is called before. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { network, url, timeoutMs } = this.#target;
    this.#attempt = network.probe(url, timeoutMs, (error) => {
      const code = codeOf(error);
      this.#end(error && `${connectReason(code)}: ${`${code} ${messageOf(error)}`.trim()}`);
    });
  }

  /** Ends a running probe without a call of the listener. */
  cancel(): void {
    this.#isRunning = false;
    this.#attempt?.cancel();
    this.#attempt = undefined;
  }

  #end(failure: string | null): void {
    if (!this.#isRunning) return;
    this.cancel();
    this.#listener(failure);
  }
}
