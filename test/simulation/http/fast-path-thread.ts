// The thread of the fast path in a simulation: it looks at bytes some time after they arrived, and writes to
// partners some time after the look. What JavaScript sends by it leaves at once.
//
// The native code is the real one, with connections in memory (native/submission/memory_streams.h). Between
// the two steps, JavaScript may read or claim the request.

import type { Clock } from "../../../src/core/clock.ts";
import { native } from "../../../src/relay/data-plane/native.ts";
import type {
  NativeFastPath,
  NativeSimulatedFastPath,
} from "../../../src/relay/data-plane/native-fast-path.ts";
import { pick, randomAt } from "../random-at.ts";

const lookDelaysMs = [0.002, 0.005, 0.02, 0.1];
const concludeDelaysMs = [0, 0.03, 0.06, 0.3];
const salt = 1;
const noBytes = new Uint8Array(0);

interface FastPathThreadOptions {
  readonly seed: number;
  /** The clock of the process. */
  readonly clock: Clock;
  /** Time of the run. */
  readonly nowNs: () => number;
}

export class FastPathThread {
  readonly handle: NativeSimulatedFastPath = new (native().SimulatedFastPath)();
  readonly #options: FastPathThreadOptions;
  /** The peers of the connections by their descriptors. */
  readonly #peers = new Map<number, (bytes: Buffer) => void>();
  #nextDescriptor = 1;
  #isAwake = false;

  constructor(options: FastPathThreadOptions) {
    this.#options = options;
    const { clock } = options;
    const sendNow: NativeFastPath["sendNow"] = this.handle.sendNow.bind(this.handle);
    // The methods of the addon cannot be assigned.
    Object.defineProperty(this.handle, "sendNow", {
      value: (transaction: Uint8Array, into: Uint8Array) => {
        this.handle.setTime(clock.monotonicNs());
        const sends = sendNow(transaction, into);
        if (sends > 0) this.#deliver();
        return sends;
      },
    });
  }

  /** Returns the descriptor of a new connection. `written` gets what the fast path writes to it. */
  open(written: (bytes: Buffer) => void): number {
    const descriptor = this.#nextDescriptor++;
    this.handle.arrive(descriptor, noBytes);
    this.#peers.set(descriptor, written);
    return descriptor;
  }

  arrive(descriptor: number, bytes: Uint8Array): void {
    this.handle.arrive(descriptor, bytes);
    if (this.#isAwake) return;
    this.#isAwake = true;
    this.#options.clock.after(this.#draw(lookDelaysMs), () => this.#look());
  }

  /** JavaScript has read so many bytes. */
  read(descriptor: number, bytes: number): void {
    this.handle.markRead(descriptor, bytes);
  }

  end(descriptor: number): void {
    this.handle.endStream(descriptor);
    this.#peers.delete(descriptor);
  }

  #look(): void {
    const { clock } = this.#options;
    this.#isAwake = this.handle.look(clock.monotonicNs());
    if (!this.#isAwake) return;
    clock.after(this.#draw(concludeDelaysMs), () => {
      this.handle.conclude(clock.monotonicNs());
      this.#deliver();
      this.#look();
    });
  }

  /** Gives the partners what was written to them. */
  #deliver(): void {
    for (let next = this.handle.takeWritten(); next; next = this.handle.takeWritten()) {
      const [descriptor, bytes] = next;
      this.#peers.get(descriptor)?.(Buffer.from(bytes));
    }
  }

  #draw(delaysMs: readonly number[]): number {
    const { seed, nowNs } = this.#options;
    return pick(randomAt(seed, nowNs(), salt), delaysMs);
  }
}
