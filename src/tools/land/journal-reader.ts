// Reads the lines of a journal back into records. Pure.
//
// The file belongs to the user, but a damaged one must not cost money: every field that decides about money
// is checked, and any doubt is an error.

import { quote, ShredwayError } from "../../core/errors.ts";
import { isObject } from "../../core/values.ts";
import type { RoundRecord, SenderAnswer, TransactionEnd, TransactionRecord } from "./records.ts";

/** First line of a journal. */
export interface JournalHead {
  /** Eight hex digits. */
  readonly run: string;
  readonly startedNs: bigint;
  readonly genesisHash: string;
  /** Base58. */
  readonly payer: string;
  readonly plan: Readonly<Record<string, string>>;
}

export interface JournalState {
  readonly head: JournalHead;
  readonly rounds: readonly RoundRecord[];
  readonly isFinished: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

function reviveBigint(_key: string, value: unknown): unknown {
  return typeof value === "string" && /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value;
}

export class JournalReader {
  readonly #path: string;
  readonly #rounds = new Map<number, RoundRecord>();
  #line = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Throws ShredwayError "system", which names the line. */
  read(lines: readonly string[], version: number): JournalState {
    let head: JournalHead | undefined;
    let isFinished = false;
    for (const text of lines) {
      this.#line++;
      const fields = this.#parse(text);
      if (!head) head = this.#head(fields, version);
      else if (fields["kind"] === "round") this.#round(fields);
      else if (fields["kind"] === "answer") this.#transaction(fields).answer = this.#answer(fields);
      else if (fields["kind"] === "end") this.#transaction(fields).end = this.#end(fields);
      else if (fields["kind"] === "finished") isFinished = true;
      else throw this.#damaged("a known kind of line", fields["kind"]);
    }
    if (!head) throw this.#damaged("the line of a run", "an empty file");
    return { head, rounds: [...this.#rounds.values()], isFinished };
  }

  #damaged(expected: string, got: unknown): ShredwayError {
    return new ShredwayError(
      "system",
      `journal ${this.#path}, line ${this.#line}: expected ${expected}, got ${quote(got)}`,
    );
  }

  #parse(text: string): Fields {
    try {
      const fields: unknown = JSON.parse(text, reviveBigint);
      if (isObject(fields)) return fields;
    } catch {
      // The error below says it better.
    }
    throw this.#damaged("a JSON object", text.slice(0, 80));
  }

  #text(fields: Fields, name: string): string {
    const value = fields[name];
    if (typeof value === "string") return value;
    throw this.#damaged(`a text in ${name}`, value);
  }

  #integer(fields: Fields, name: string): number {
    const value = fields[name];
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
    throw this.#damaged(`an integer in ${name}`, value);
  }

  #bigint(fields: Fields, name: string): bigint {
    const value = fields[name];
    if (typeof value === "bigint") return value;
    throw this.#damaged(`digits and "n" in ${name}`, value);
  }

  #numberOrNull(fields: Fields, name: string): number | null {
    const value = fields[name];
    if (value === null || typeof value === "number") return value;
    throw this.#damaged(`a number or null in ${name}`, value);
  }

  #head(fields: Fields, version: number): JournalHead {
    if (fields["kind"] !== "run" || fields["version"] !== version) {
      throw this.#damaged(`the line of a run of version ${version}`, fields["version"]);
    }
    const plan = fields["plan"];
    if (!isObject(plan)) throw this.#damaged("a plan", plan);
    return {
      run: this.#text(fields, "run"),
      startedNs: this.#bigint(fields, "startedNs"),
      genesisHash: this.#text(fields, "genesisHash"),
      payer: this.#text(fields, "payer"),
      plan: Object.fromEntries(Object.keys(plan).map((name) => [name, this.#text(plan, name)])),
    };
  }

  #round(fields: Fields): void {
    const { transactions } = fields;
    if (!Array.isArray(transactions)) throw this.#damaged("transactions", transactions);
    const round = this.#integer(fields, "round");
    if (this.#rounds.has(round)) throw this.#damaged("a new round", round);
    this.#rounds.set(round, {
      round,
      slot: this.#integer(fields, "slot"),
      lastValidBlockHeight: this.#numberOrNull(fields, "lastValidBlockHeight"),
      nonce: fields["nonce"] === null ? null : this.#text(fields, "nonce"),
      transactions: transactions.map((each: unknown, sender): TransactionRecord => {
        if (!isObject(each)) throw this.#damaged("a transaction", each);
        const signature = this.#text(each, "signature");
        return {
          sender,
          signature,
          lamports: this.#bigint(each, "lamports"),
          answer: null,
          end: null,
        };
      }),
    });
  }

  #transaction(fields: Fields): TransactionRecord {
    const round = this.#rounds.get(this.#integer(fields, "round"));
    const transaction = round?.transactions[this.#integer(fields, "sender")];
    if (transaction) return transaction;
    throw this.#damaged("a transaction of an earlier line", fields["round"]);
  }

  #answer(fields: Fields): SenderAnswer {
    const { error } = fields;
    return {
      sentNs: this.#bigint(fields, "sentNs"),
      order: this.#integer(fields, "order"),
      responseNs: this.#numberOrNull(fields, "responseNs"),
      error: isObject(error)
        ? { reason: this.#text(error, "reason"), message: this.#text(error, "message") }
        : null,
    };
  }

  #end(fields: Fields): TransactionEnd {
    const states = ["landed", "failed", "expired", "superseded", "not_landed"] as const;
    const state = states.find((each) => each === fields["state"]);
    if (!state) throw this.#damaged("the state of an end", fields["state"]);
    const { landing } = fields;
    return { state, landing: isObject(landing) ? this.#landing(landing) : null };
  }

  #landing(fields: Fields): NonNullable<TransactionEnd["landing"]> {
    const { shred, block, error } = fields;
    const at = (group: Fields) => (name: string) => this.#integer(group, name);
    return {
      slot: this.#integer(fields, "slot"),
      slots: this.#numberOrNull(fields, "slots") ?? 0,
      timeNs: this.#numberOrNull(fields, "timeNs"),
      via: fields["via"] === "shreds" ? "shreds" : "node",
      shred: isObject(shred)
        ? {
            fecSet: at(shred)("fecSet"),
            shredIndex: at(shred)("shredIndex"),
            batchIndex: at(shred)("batchIndex"),
            ordinal: at(shred)("ordinal"),
          }
        : null,
      block: isObject(block)
        ? { index: at(block)("index"), transactions: at(block)("transactions") }
        : null,
      error: typeof error === "string" ? error : null,
    };
  }
}
