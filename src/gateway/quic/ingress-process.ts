// The process of the QUIC ingress: its sockets, requests to it, and its events.
//
// Owned by quic-ingress.ts. This process opens the UDP sockets and passes them on, so a restart of the
// other process loses neither the ports nor the packets that arrive meanwhile. Answers of one turn of the
// event loop are sent in one message. Nothing throws after the constructor.

import type { ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import { formatAddress, parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { QuicheCredentials } from "../../core/quic/quiche.ts";
import { openUdpDescriptor, splitUdpPort } from "../../relay/data-plane/udp-socket.ts";
import type { StreamOffers } from "../fast-path/stream-offers.ts";
import { ConfinedProcess } from "../tpu/confined-process.ts";
import { channelDescriptor, startQuicProcess } from "../tpu/start-quic-process.ts";
import type { ProcessState } from "../tpu/types.ts";
import { answerBytesMax, decodeAnswer, encodeRequest } from "./ingress-messages.ts";
import type {
  IngressAnswer,
  IngressEvent,
  IngressListener,
  IngressRequest,
  IngressSettings,
} from "./types.ts";

export interface IngressProcessOptions {
  /** "ip:port" each; port 0: the kernel chooses. */
  readonly listen: readonly string[];
  readonly settings: Omit<IngressSettings, "listeners">;
  readonly credentials: QuicheCredentials;
  /** For stateless resets and connection ids. */
  readonly secret: string;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** The channel to the fast path; null: none. */
  readonly offers?: Pick<StreamOffers, "open"> | null | undefined;
  readonly handle: (event: Exclude<IngressEvent, { kind: "listening" }>) => void;
  /** The process ended: all its connections are gone. */
  readonly lost: () => void;
  /** Starts the process; tests replace it. */
  readonly start?: ((descriptors: readonly number[]) => ChildProcess) | undefined;
  readonly residentBytesMax?: number | undefined;
}

interface OpenedSocket extends IngressListener {
  /** Position in `listen`. */
  readonly index: number;
  /** The socket of connections, and the socket of first packets at the same port. */
  readonly descriptors: readonly [number, number];
}

/** A flood of first packets fills only its own buffer, so connected clients lose no packets by it. */
function openPort(host: string, port: number): [number, number] {
  const descriptor = openUdpDescriptor(host, port);
  try {
    return [descriptor, splitUdpPort(descriptor)];
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function closeSockets(sockets: readonly OpenedSocket[]): void {
  for (const { descriptors } of sockets) for (const each of descriptors) closeSync(each);
}

/** null: this machine has no IPv6, and the address is only "all addresses of IPv6". */
function openSocket(address: string, index: number): OpenedSocket | null {
  const { bytes, port } = parseEndpoint(address, { allowPortZero: true });
  const host = formatAddress(bytes);
  try {
    return { index, host, descriptors: openPort(host, port) };
  } catch (cause) {
    const isMissingFamily = cause instanceof Error && Reflect.get(cause, "code") === "EAFNOSUPPORT";
    if (host === "::" && isMissingFamily) return null;
    const message = `cannot listen on ${address} (UDP): ${messageOf(cause)}`;
    throw new ShredwayError("quic_open", message, { cause });
  }
}

/** Opens all of them. Throws ShredwayError "quic_open", after closing those that are open. */
function openSockets(listen: readonly string[]): OpenedSocket[] {
  const sockets: OpenedSocket[] = [];
  try {
    for (const [index, address] of listen.entries()) {
      const socket = openSocket(address, index);
      if (socket) sockets.push(socket);
    }
    return sockets;
  } catch (error) {
    closeSockets(sockets);
    throw error;
  }
}

export class IngressProcess {
  readonly #options: IngressProcessOptions;
  readonly #sockets: readonly OpenedSocket[];
  readonly #process: ConfinedProcess<IngressEvent>;
  #credentials: QuicheCredentials;
  #answers: IngressAnswer[] = [];
  #addresses: readonly string[] = [];
  #closing: Promise<void> | undefined;
  /** In the process. */
  #offersDescriptor: number | null = null;

  /** Throws ShredwayError "quic_open". */
  constructor(options: IngressProcessOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
    this.#sockets = openSockets(options.listen);
    const { clock, log, handle, lost } = options;
    this.#process = new ConfinedProcess<IngressEvent>({
      component: "quic",
      clock,
      log,
      start: () => this.#start(),
      residentBytesMax: options.residentBytesMax,
      answerBytesMax,
      decode: decodeAnswer,
      ping: () => encodeRequest({ kind: "ping" }),
      farewell: () => encodeRequest({ kind: "close" }),
      isWanted: () => true,
      started: () => this.#started(),
      handle: (event) => {
        if (event.kind === "listening") this.#addresses = event.addresses;
        else if (event.kind === "connected") {
          const { connection } = event;
          const listener = this.#sockets[connection.listener]?.index ?? -1;
          handle({ kind: "connected", connection: { ...connection, listener } });
        } else handle(event);
      },
      ended: () => lost(),
    });
  }

  /** Settles when the process serves, or failed to start; it then starts again by itself. */
  start(): Promise<void> {
    this.#process.start();
    return this.#process.opened();
  }

  /** "ip:port" of each socket; empty before the first start. */
  get addresses(): readonly string[] {
    return this.#addresses;
  }

  get isUp(): boolean {
    return this.#process.isRunning;
  }

  get state(): ProcessState {
    return this.#process.state;
  }

  /** Sent with all others of this turn. */
  answer(answer: IngressAnswer): void {
    if (this.#answers.length === 0) setImmediate(() => this.#sendAnswers());
    this.#answers.push(answer);
  }

  admit(connection: number): void {
    this.#post({ kind: "admit", connection });
  }

  /** From now on, transactions of the connection are offered to the fast path. */
  offer(connection: number): void {
    this.#post({ kind: "offer", connection });
  }

  dismiss(connection: number, code: number, reason: string): void {
    this.#sendAnswers();
    this.#post({ kind: "dismiss", connection, code, reason });
  }

  identify(credentials: QuicheCredentials): void {
    this.#credentials = credentials;
    this.#post({ kind: "identify", credentials });
  }

  /** Closes all connections with notice. Settles when the process has ended or was abandoned. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#sendAnswers();
    await this.#process.close();
    closeSockets(this.#sockets);
  }

  #sendAnswers(): void {
    const answers = this.#answers;
    if (answers.length === 0) return;
    this.#answers = [];
    this.#post({ kind: "answers", answers });
  }

  #start(): ChildProcess {
    const { start = startIngress, offers, log } = this.#options;
    const sockets = this.#sockets.flatMap(({ descriptors }) => descriptors);
    const channel = offers?.open() ?? null;
    this.#offersDescriptor = channel === null ? null : channelDescriptor + 1 + sockets.length;
    if (channel === null) {
      if (offers)
        log?.warn("quic: no channel to the fast path: transactions are sent after they were read");
      return start(sockets);
    }
    try {
      return start([...sockets, channel]);
    } finally {
      closeSync(channel);
    }
  }

  #post(request: IngressRequest): void {
    this.#process.post(encodeRequest(request));
  }

  #started(): void {
    this.#answers = [];
    const listeners = this.#sockets.map(({ host }) => ({ host }));
    const { secret } = this.#options;
    const settings = { ...this.#options.settings, listeners };
    const credentials = this.#credentials;
    const offersDescriptor = this.#offersDescriptor;
    this.#post({ kind: "open", settings, credentials, secret, offersDescriptor });
  }
}

function startIngress(descriptors: readonly number[]): ChildProcess {
  return startQuicProcess("../quic/ingress-process-main", descriptors);
}
