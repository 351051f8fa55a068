// The customers' programs: they write calls as HTTP requests to several connections, and misbehave sometimes.
//
// What a call draws depends on its time only, so that a run with some events removed does the same in the
// others.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import { pick, randomAt } from "../random-at.ts";
import type { SimulatedTime } from "../simulated-time.ts";
import { CustomerConnection } from "./customer-connection.ts";
import type { MemoryCallers } from "./memory-callers.ts";
import {
  anyForm,
  type CallerRequest,
  healthForm,
  malformed,
  type RequestForm,
  steadyForm,
} from "./request-forms.ts";

const firstSalt = 3;
const customersMax = 8;
/** Shares of calls with a mishap, by seed. */
const mishapShares = [0, 0.04, 0.12];
/** After them, the call is not complete, and must not be executed. */
const incomplete = ["cut inside", "end inside", "stall inside", "malformed instead"] as const;
const complete = ["cut behind", "end behind", "read slowly", "malformed behind"] as const;
type Mishap = (typeof incomplete)[number] | (typeof complete)[number];
const connectionsMax = 4;
/** Requests on one connection without a response. */
const pipelineMax = 4;
const delaysMs = [0.2, 1, 5, 40];
const windowsBytes = [4_000, 65_536, 1_000_000];

interface HttpCallersOptions {
  readonly seed: number;
  readonly time: SimulatedTime;
  readonly note: (text: string) => void;
  readonly guard: (action: () => void) => void;
}

export interface PreparedCall {
  /** False: the gateway never gets all of it, and must not execute it. */
  readonly isComplete: boolean;
  /** Settles with the JSON-RPC answer; null: the connection was cut before. */
  send(): Promise<unknown>;
}

function isIncomplete(mishap: Mishap | null): boolean {
  return incomplete.some((each) => each === mishap);
}

export class HttpCallers {
  readonly #options: HttpCallersOptions;
  readonly #mishapShare: number;
  readonly #connections = new Map<number, CustomerConnection[]>();
  /** Connections of programs that repeat one head, by customer. */
  readonly #steady = new Map<number, CustomerConnection>();
  #network: MemoryCallers | null = null;
  #opened = 0;
  #steadyIds = 0;
  #lastNs = 0;
  #callsOfMoment = 0;

  constructor(options: HttpCallersOptions) {
    const random = randomAt(options.seed, 0, firstSalt);
    this.#options = options;
    this.#mishapShare = pick(random, mishapShares);
  }

  /** The service runs. */
  restarted(network: MemoryCallers): void {
    this.#network = network;
  }

  /** The service was killed. */
  crashed(): void {
    this.#network = null;
    for (const connection of [...this.#connections.values()].flat()) connection.kill();
    this.#connections.clear();
    this.#steady.clear();
  }

  /** Called once in each slot. Throws Violation. */
  check(): void {
    for (const connection of [...this.#connections.values()].flat()) connection.check();
  }

  prepare(customer: number, request: CallerRequest): PreparedCall {
    const random = this.#randomOf(customer);
    const { isSteady = false } = request;
    const form = isSteady ? steadyForm(++this.#steadyIds, request) : anyForm(random, request);
    const mishap = random.happens(this.#mishapShare)
      ? pick<Mishap>(random, [...incomplete, ...complete])
      : null;
    const send = (): Promise<unknown> =>
      new Promise((resolve) => {
        const network = this.#network;
        if (!network) {
          resolve(null);
          return;
        }
        const connection = this.#choose(random, customer, network, isSteady);
        const { note } = this.#options;
        if (mishap) note(`customer ${customer} ${request.method} as ${form.name}: ${mishap}`);
        this.#send(random, { connection, form, mishap, resolve });
      });
    return { isComplete: !isIncomplete(mishap), send };
  }

  #send(random: SeededRandom, { connection, form, mishap, resolve }: Sending): void {
    if (mishap && isIncomplete(mishap)) {
      // The customer learns at once that nothing came of it.
      resolve(null);
      sendIncomplete(random, connection, form, mishap);
      return;
    }
    const health = { form: healthForm, done: (): void => {} };
    const call = { form, done: resolve };
    const isFirst = !form.isLast && random.happens(0.05);
    const isSecond = random.happens(0.05);
    if (mishap === "read slowly") connection.pauseFor(100 + random.below(2_500));
    if (isFirst) connection.send(random, [call, health]);
    else connection.send(random, isSecond ? [health, call] : [call]);
    const laterMs = pick(random, [0, 0, 1, 20, 60]);
    if (mishap === "cut behind") connection.resetAfter(laterMs);
    if (mishap === "end behind") connection.endAfter(laterMs);
    if (mishap === "malformed behind") connection.sendMalformed(random, ...pick(random, malformed));
  }

  #choose(
    random: SeededRandom,
    customer: number,
    network: MemoryCallers,
    isSteady: boolean,
  ): CustomerConnection {
    const steady = this.#steady.get(customer);
    if (isSteady && steady?.isUsable && (steady.waiting === 0 || random.happens(0.3)))
      return steady;
    const all = (this.#connections.get(customer) ?? []).filter(({ isOver }) => !isOver);
    const usable = all.filter(
      (one) => one.isUsable && one.waiting < pipelineMax && (isSteady || one !== steady),
    );
    const idle = usable.filter(({ waiting }) => waiting === 0);
    const isReused = random.happens(0.8) || all.length >= connectionsMax;
    const chosen = idle.length > 0 && random.happens(0.8) ? idle : usable;
    const reused = isReused && chosen.length > 0 ? pick(random, chosen) : undefined;
    const connection = reused ?? this.#open(random, customer, network);
    if (!reused) this.#connections.set(customer, [...all, connection]);
    if (isSteady) this.#steady.set(customer, connection);
    return connection;
  }

  #open(random: SeededRandom, customer: number, network: MemoryCallers): CustomerConnection {
    const { time, note, guard } = this.#options;
    const line = {
      address: `192.0.2.${customer}`,
      delayMs: pick(random, delaysMs),
      windowBytes: pick(random, windowsBytes),
    };
    const number = ++this.#opened;
    note(`customer ${customer} opens connection ${number}: ${JSON.stringify(line)}`);
    const connect = network.connect.bind(network);
    return new CustomerConnection({ number, time, guard, connect, line });
  }

  #randomOf(customer: number): SeededRandom {
    const { time, seed } = this.#options;
    this.#callsOfMoment = time.nowNs === this.#lastNs ? this.#callsOfMoment + 1 : 0;
    this.#lastNs = time.nowNs;
    const salt = firstSalt + 1 + customer + customersMax * (this.#callsOfMoment % 4);
    return randomAt(seed, time.nowNs, salt);
  }
}

interface Sending {
  readonly connection: CustomerConnection;
  readonly form: RequestForm;
  readonly mishap: Mishap | null;
  readonly resolve: (answer: unknown) => void;
}

function sendIncomplete(
  random: SeededRandom,
  connection: CustomerConnection,
  { bytes }: RequestForm,
  mishap: Mishap,
): void {
  if (mishap === "malformed instead") connection.sendMalformed(random, ...pick(random, malformed));
  else if (mishap === "cut inside") connection.sendPart(random, bytes, "reset");
  else connection.sendPart(random, bytes, mishap === "end inside" ? "end" : "stall");
}
