// The inside of a confined process: its channel to the gateway, and what every such process does.
//
// Used by quic-process-main.ts and ../quic/ingress-process-main.ts; confined-process.ts is the other end.
// The process ends when the gateway closes the channel or ends itself.

import { type ConnectOpts, Socket, type SocketConstructorOpts } from "node:net";
import { loadQuiche, type Quiche, quicheProblem } from "../../core/quic/quiche.ts";
import { confineProcess, restartWithoutRings } from "../../relay/data-plane/native.ts";
import { FrameReader } from "./frames.ts";
import { preferForOutOfMemory } from "./process-memory.ts";
import { allocatedBytesMax, channelDescriptor } from "./start-quic-process.ts";

const readBytesMax = 65_536;

interface ChannelOptions<Request, Answer> {
  readonly requestBytesMax: number;
  readonly decode: (kind: number, body: Buffer) => Request;
  readonly encode: (answer: Answer) => Uint8Array;
  /** `end` ends the process after its last answer. */
  readonly create: (
    answer: (answer: Answer) => void,
    end: () => void,
  ) => { handle(request: Request): void };
}

/** Serves the requests of the gateway. Call it once, first of all: it may restart the program. */
export function serveChannel<Request, Answer>(options: ChannelOptions<Request, Answer>): void {
  // A failure appears when the process is confined.
  restartWithoutRings(Number(process.argv[2]));
  const { requestBytesMax, decode, encode, create } = options;
  const reader = new FrameReader(requestBytesMax, (kind, body) => main.handle(decode(kind, body)));
  // Node.js accepts `onread` here, but its types know it for outgoing connections only.
  const channelOptions: SocketConstructorOpts & ConnectOpts = {
    fd: channelDescriptor,
    readable: true,
    writable: true,
    // One buffer for all reads: a new one for each would cost more than a transaction's copy.
    onread: {
      buffer: Buffer.allocUnsafeSlow(readBytesMax),
      callback: (length, bytes) => {
        reader.push(Buffer.from(bytes.subarray(0, length)));
        return true;
      },
    },
  };
  const channel = new Socket(channelOptions);
  const main = create(
    (answer) => channel.write(encode(answer)),
    () => channel.end(() => process.exit(0)),
  );
  channel.on("end", () => process.exit(0));
  channel.on("error", () => process.exit(0));
}

/** Throws if the library is missing. */
export function requireQuiche(): Quiche {
  const quiche = loadQuiche();
  if (quiche) return quiche;
  throw new Error(quicheProblem() ?? "QUIC is not available");
}

/** Call it before the first packet. Returns the steps that the system refused; empty: none. */
export function confineThisProcess(): string {
  preferForOutOfMemory();
  return confineProcess(process.ppid, allocatedBytesMax);
}
