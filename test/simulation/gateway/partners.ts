// The simulated partners: HTTP servers of block engines and staked nodes, which may lie, stall, refuse or die.
//
// Each records what it has received and answered. A transaction that a partner passes on reaches the leaders.

import type { SimulatedTime } from "../simulated-time.ts";
import type { PartnerListener, PartnerPeer, PeerConnection } from "./memory-network.ts";
import { PartnerRecord, type Reception } from "./partner-record.ts";
import type { SentTransaction, Transactions } from "./transactions.ts";

export const partnerNames = ["staked", "costly", "builder", "auction"] as const;
export type PartnerName = (typeof partnerNames)[number];
/** The route over QUIC to the leaders. */
export const leadersName = "leaders";
export type RouteName = PartnerName | typeof leadersName;

/** A partner, or all leaders together, as the checks see them. */
export interface PartnerView {
  receptionOf(signature: string): Reception;
  /** Calls, or copies of transactions, in the present life of the service. */
  readonly calls: number;
  /** Calls without a response. */
  readonly unanswered: number;
  /** Since when everything must reach it; null: it may not. */
  readonly goodSinceMs: number | null;
}
/** Tips below are not for this partner. */
export const costlyTip = 50_000;
/** Below this many micro-lamports per compute unit, a transaction is not for the alternative partner. */
export const auctionUnitPrice = 10_000_000;

/** The ways in which a partner does not just accept a request. */
export const partnerMoods = [
  "lies",
  "stalls",
  "answers twice",
  "refuses",
  "refuses for good",
  "asks for a pause",
  "fails",
  "answers nonsense",
  "cuts",
  "dead",
] as const;
export type PartnerMood = (typeof partnerMoods)[number] | "accepts";

/** Moods in which the leaders get the transaction. */
const passing: ReadonlySet<PartnerMood> = new Set(["accepts", "stalls", "answers twice", "cuts"]);

/** The reason why the partner must not have a transaction; null: none. */
export function partnerProblemOf(
  name: RouteName,
  { unitPrice }: SentTransaction,
  isForPartnersOnly: boolean,
): string | null {
  if (name === "auction") return unitPrice < auctionUnitPrice ? "pays too little per unit" : null;
  return isForPartnersOnly ? "is for alternative partners only" : null;
}

interface Call {
  readonly id: number;
  readonly method: string;
  readonly transactions: readonly SentTransaction[];
  readonly text: string;
}

interface PartnerOptions {
  readonly name: PartnerName;
  readonly time: SimulatedTime;
  readonly transactions: Transactions;
  /** Leaders get them. */
  readonly passOn: (transactions: readonly SentTransaction[], isBundle: boolean) => void;
  /** Called for each call, before it is answered. `signed` null: no customer signed these bytes. */
  readonly onCall: (name: PartnerName, signed: readonly (SentTransaction | null)[]) => void;
  readonly onFinalRefusal: (name: PartnerName, signature: string) => void;
}

const delayMs = { staked: 8, costly: 25, builder: 60, auction: 12 } as const;
const headEnd = "\r\n\r\n";

function response(status: string, body: string, headers = ""): Buffer {
  return Buffer.from(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\n${headers}` +
      `content-length: ${Buffer.byteLength(body)}${headEnd}${body}`,
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

export class SimulatedPartner implements PartnerListener, PartnerView {
  readonly #options: PartnerOptions;
  readonly #connections = new Set<PeerConnection>();
  readonly #record = new PartnerRecord();
  #mood: PartnerMood = "accepts";
  /** When it began to accept everything; null: it does not. */
  #goodSinceMs: number | null = 0;
  /** Calls received from the present life of the service. */
  calls = 0;
  /** Calls that got no response: the gateway may repeat each once, and counts it once. */
  unanswered = 0;

  constructor(options: PartnerOptions) {
    this.#options = options;
  }

  get mood(): PartnerMood {
    return this.#mood;
  }

  get goodSinceMs(): number | null {
    return this.#goodSinceMs;
  }

  setMood(mood: PartnerMood): void {
    this.#mood = mood;
    this.#goodSinceMs = mood === "accepts" ? this.#options.time.nowMs : null;
    if (mood === "dead") for (const connection of this.#connections) connection.reset();
  }

  receptionOf(signature: string): Reception {
    return this.#record.receptionOf(signature);
  }

  accept(connection: PeerConnection): PartnerPeer | null {
    if (this.#mood === "dead") return null;
    this.#connections.add(connection);
    let bytes = Buffer.alloc(0);
    return {
      received: (piece) => {
        bytes = Buffer.concat([bytes, piece]);
        const end = bytes.indexOf(headEnd);
        if (end < 0) return;
        const head = bytes.toString("latin1", 0, end);
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (bytes.length < end + headEnd.length + length) return;
        const body = bytes.toString("utf8", end + headEnd.length);
        bytes = Buffer.alloc(0);
        this.#requested(connection, head, body);
      },
      closed: () => void this.#connections.delete(connection),
    };
  }

  #requested(connection: PeerConnection, head: string, body: string): void {
    if (head.startsWith("GET ")) {
      const isWell = this.#mood !== "fails";
      this.#after(() => connection.send(response(isWell ? "200 OK" : "500 Broken", "{}")));
      return;
    }
    const json: unknown = JSON.parse(body);
    const calls = (Array.isArray(json) ? json : [json]).map((call) => this.#read(call));
    for (const { transactions } of calls) {
      this.calls++;
      this.unanswered++;
      for (const { signature } of transactions) this.receptionOf(signature).received++;
    }
    const mood = this.#mood;
    if (passing.has(mood)) this.#passOn(calls);
    if (mood === "cuts") {
      this.#after(() => connection.reset());
      return;
    }
    if (mood === "stalls") return;
    const answer = this.#answer(mood, calls, Array.isArray(json));
    this.#after(() => {
      if (!connection.isOpen) return;
      this.unanswered -= calls.length;
      this.#note(mood, calls);
      connection.send(answer);
      if (mood === "answers twice") connection.send(answer);
    });
  }

  #read(call: unknown): Call {
    const { id, method, params } = isRecord(call) ? call : {};
    const [first]: unknown[] = Array.isArray(params) ? params : [];
    const texts: unknown[] = Array.isArray(first) ? first : [first];
    const signed = texts.map((text) => this.#options.transactions.ofBase64(String(text)) ?? null);
    this.#options.onCall(this.#options.name, signed);
    const transactions = signed.filter((each) => each !== null);
    return {
      id: Number(id),
      method: String(method),
      transactions,
      text: transactions[0]?.signature ?? "",
    };
  }

  #passOn(calls: readonly Call[]): void {
    for (const { transactions, method } of calls)
      this.#after(() => this.#options.passOn(transactions, method === "sendBundle"));
  }

  /** Counts the answer before the gateway gets it. */
  #note(mood: PartnerMood, calls: readonly Call[]): void {
    for (const { signature } of calls.flatMap(({ transactions }) => transactions)) {
      const reception = this.receptionOf(signature);
      if (mood === "refuses for good") {
        reception.refusedForGood++;
        this.#options.onFinalRefusal(this.#options.name, signature);
      }
      if (mood.startsWith("refuses") || mood === "asks for a pause" || mood === "fails")
        reception.refused++;
      else if (mood !== "answers nonsense") reception.acknowledged++;
    }
  }

  #answer(mood: PartnerMood, calls: readonly Call[], isArray: boolean): Buffer {
    if (mood === "fails") return response("500 Broken", "{}");
    if (mood === "asks for a pause") return response("429 Later", "{}", "retry-after: 1\r\n");
    if (mood === "answers nonsense") return response("200 OK", '{"jsonrpc":"2.0","id":-5}');
    const code = mood === "refuses for good" ? -32_602 : -32_005;
    const answers = calls.map(({ id, text }) => {
      const result = mood.startsWith("refuses")
        ? { error: { code, message: "no" } }
        : { result: text };
      return { jsonrpc: "2.0", id, ...result };
    });
    return response("200 OK", JSON.stringify(isArray ? answers : answers[0]));
  }

  #after(action: () => void): void {
    const { time, name } = this.#options;
    time.at(time.nowNs + delayMs[name] * 1e6, action);
  }
}
