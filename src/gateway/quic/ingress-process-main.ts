// The process of the QUIC ingress: receives transactions of clients and passes them to the gateway.
//
// Started by ingress-process.ts with a socket to the gateway as descriptor 3, the UDP sockets as 4, 5, …, two for
// each listener, and then the channel to the fast path. The QUIC library is native code that parses data of
// strangers, so it runs in a process of its own, which is confined before the first packet. Streams of one turn of
// the event loop are passed in one message. The process ends when the gateway closes the socket or ends itself.

import { systemClock, type Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { native } from "../../relay/data-plane/native.ts";
import { confineThisProcess, requireQuiche, serveChannel } from "../tpu/confined-main.ts";
import { PacketFailures } from "../tpu/packet-failures.ts";
import { channelDescriptor } from "../tpu/start-quic-process.ts";
import { decodeRequest, encodeAnswer, requestBytesMax } from "./ingress-messages.ts";
import { IngressServer } from "./ingress-server.ts";
import type { OpenListenerSockets } from "./server-sockets.ts";
import type {
  IngressProcessAnswer,
  IngressRequest,
  IngressStream,
  ReceivedStream,
} from "./types.ts";
import { ingressBufferBytes } from "./udp-buffers.ts";

const countsMs = 100;

type OpenRequest = Extract<IngressRequest, { kind: "open" }>;

/** `descriptor`: of the packets of connections; the next one is that of first packets. */
function socketsAt(descriptor: number): OpenListenerSockets {
  const { ConnectionSocket, FirstPackets } = native();
  return {
    connections: (...words) => new ConnectionSocket(descriptor, ingressBufferBytes, ...words),
    firstPackets: (...words) => new FirstPackets(descriptor + 1, ingressBufferBytes, ...words),
  };
}

class Main {
  readonly #answer: (answer: IngressProcessAnswer) => void;
  readonly #end: () => void;
  #server: IngressServer | null = null;
  #streams: IngressStream[] = [];
  #counts: Timer | undefined;
  #lastCounts = "";
  readonly #failures: PacketFailures;
  #offersDescriptor: number | null = null;
  /** Connections whose transactions are offered to the fast path. */
  readonly #offering = new Set<number>();
  #offers = 0;

  constructor(answer: (answer: IngressProcessAnswer) => void, end: () => void) {
    this.#answer = answer;
    this.#end = end;
    this.#failures = new PacketFailures(answer);
  }

  handle(request: IngressRequest): void {
    const server = this.#server;
    if (request.kind === "ping") this.#answer({ kind: "pong" });
    else if (request.kind === "open") this.#tryToOpen(request);
    else if (!server) return;
    else if (request.kind === "answers") server.answer(request.answers);
    else if (request.kind === "admit") server.admit(request.connection);
    else if (request.kind === "offer") this.#offering.add(request.connection);
    else if (request.kind === "dismiss") {
      server.dismiss(request.connection, request.code, request.reason);
    } else if (request.kind === "identify") server.identify(request.credentials);
    else void this.#close(server);
  }

  #tryToOpen(request: OpenRequest): void {
    try {
      this.#open(request);
    } catch (error) {
      this.#answer({ kind: "refused", message: messageOf(error) });
      this.#end();
    }
  }

  #open({ settings, credentials, secret, offersDescriptor }: OpenRequest): void {
    this.#offersDescriptor = offersDescriptor;
    const quiche = requireQuiche();
    const sockets = settings.listeners.map((_, index) =>
      socketsAt(channelDescriptor + 1 + 2 * index),
    );
    this.#server = new IngressServer({
      quiche,
      clock: systemClock,
      settings,
      credentials,
      secret,
      sockets,
      connected: (connection) => this.#answer({ kind: "connected", connection }),
      received: (stream) => this.#receive(stream),
      flush: () => this.#passStreams(),
      ended: (connection, end) => {
        this.#offering.delete(connection);
        this.#passStreams();
        if (this.#server?.hasDrops(connection)) this.#reportCounts();
        this.#answer({ kind: "ended", connection, end });
      },
    });
    const unconfined = confineThisProcess();
    this.#counts = systemClock.every(countsMs, () => this.#reportCounts());
    this.#answer({ kind: "listening", addresses: this.#server.addresses });
    this.#answer({ kind: "opened", unconfined });
  }

  #receive(received: ReceivedStream): void {
    const { connection, stream, receivedNs, bytes } = received;
    const sequence = this.#offer(received);
    this.#streams.push({ connection, stream, receivedNs, sequence, bytes });
  }

  /** Returns the number of the offer; 0: it was not offered. */
  #offer({ connection, bytes }: ReceivedStream): number {
    if (this.#offersDescriptor === null || !this.#offering.has(connection)) return 0;
    const sequence = ++this.#offers;
    const isOffered = native().writeOffer(this.#offersDescriptor, sequence, connection, bytes);
    return isOffered ? sequence : 0;
  }

  #passStreams(): void {
    const streams = this.#streams;
    if (streams.length === 0) return;
    this.#streams = [];
    this.#answer({ kind: "streams", streams });
  }

  #reportCounts(): void {
    const server = this.#server;
    if (!server) return;
    const { counts, failures } = server;
    const text = JSON.stringify(counts);
    if (text !== this.#lastCounts) {
      this.#lastCounts = text;
      const connectionDrops = server.takeConnectionDrops();
      this.#answer({ kind: "counts", counts, connectionDrops });
    }
    this.#failures.report(failures);
  }

  async #close(server: IngressServer): Promise<void> {
    this.#counts?.cancel();
    this.#passStreams();
    await server.close();
    this.#end();
  }
}

serveChannel({
  requestBytesMax,
  decode: decodeRequest,
  encode: encodeAnswer,
  create: (answer, end) => new Main(answer, end),
});
