// Connect probe: finds out whether a partner accepts connections, without sending it anything.
//
// partner-endpoint.ts runs it when a route opens, and while the route is idle. It makes a TCP connection and
// a TLS handshake of its own and closes them, so that it neither costs anything at the partner nor delays a
// transaction.

import { Socket } from "node:net";
import { buildConnector } from "undici";
import { codeOf, messageOf } from "../../core/errors.ts";
import { connectReason } from "./partner-connection.ts";

/** `failure`: reason and text; null: the partner accepts connections. The text may contain secrets. */
type ProbeListener = (failure: string | null) => void;

export class ConnectProbe {
  readonly #url: URL;
  readonly #timeoutMs: number;
  readonly #listener: ProbeListener;
  #socket: Socket | undefined;
  #isRunning = false;

  constructor(
    { url, timeoutMs }: { readonly url: URL; readonly timeoutMs: number },
    listener: ProbeListener,
  ) {
    this.#url = url;
    this.#timeoutMs = timeoutMs;
    this.#listener = listener;
  }

  /** Connects; the listener is called once, unless `cancel` is called before. */
  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { protocol, host, hostname, port } = this.#url;
    const connect = buildConnector({ timeout: this.#timeoutMs, allowH2: false });
    const options = { protocol, host, hostname: hostname.replaceAll(/^\[|\]$/g, ""), port };
    const socket: unknown = connect(options, (...[error]) => {
      const code = codeOf(error);
      this.#end(error && `${connectReason(code)}: ${`${code} ${messageOf(error)}`.trim()}`);
    });
    if (socket instanceof Socket) this.#socket = socket;
  }

  /** Ends a running probe without a call of the listener. */
  cancel(): void {
    this.#isRunning = false;
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #end(failure: string | null): void {
    if (!this.#isRunning) return;
    this.cancel();
    this.#listener(failure);
  }
}
