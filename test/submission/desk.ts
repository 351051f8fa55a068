// A pipeline with one route, a store and a node, all at hand: every answer is what a test says.

import { ShredwayError } from "../../src/core/errors.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import type { PipelineLimits } from "../../src/submission/limits.ts";
import { Pipeline } from "../../src/submission/pipeline.ts";
import type {
  LandedTips,
  LeaderContext,
  Outcomes,
  Parcel,
  Route,
  Sights,
  SignatureOutcome,
  SubmitOptions,
  SubmitRequest,
} from "../../src/submission/types.ts";
import type { TransactionFacts } from "../../src/transactions/facts.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { makeFacts } from "./model.ts";
import { capabilitiesOf, emptySnapshot, ModelStore } from "./model-parts.ts";

const noOptions: SubmitOptions = {
  swqosOnly: false,
  mevProtect: false,
  revertProtection: false,
  resendsMax: null,
};

type Sight = Parameters<Sights["watch"]>[1];

export class Desk implements Sights, Outcomes {
  readonly clock = new ManualClock();
  readonly random = new SeededRandom(3);
  readonly store: ModelStore;
  readonly parcels: Parcel[] = [];
  readonly warnings: string[] = [];
  readonly sights = new Map<string, Sight>();
  readonly answers = new Map<string, SignatureOutcome>();
  readonly asked: string[][] = [];
  leaders: LeaderContext = { slot: 4n, current: "A", next: "B" };
  isBlockhashGone = false;
  nonce: string | null = null;
  takes = true;
  isWatchFull = false;
  isNodeFailing = false;
  readonly readable: TransactionFacts[] = [];
  readonly pipeline: Pipeline;

  constructor(
    limits: Partial<PipelineLimits> = {},
    has: { node?: boolean; route?: Route; tips?: LandedTips } = {},
  ) {
    this.store = new ModelStore(this.clock, this.random);
    this.store.failShare = 0;
    const capabilities = capabilitiesOf({ mevSafe: true });
    const route: Route = {
      capabilities,
      isUp: true,
      offer: (parcel) => {
        if (this.takes) this.parcels.push(parcel);
        return this.takes;
      },
      snapshot: () => emptySnapshot(capabilities),
      close: async () => {},
    };
    this.pipeline = new Pipeline(
      {
        clock: this.clock,
        log: { warn: (text: unknown) => void this.warnings.push(String(text)) },
        routes: () => [route],
        policy: () => ({ denyLeaders: new Set(["bad"]), minimumTipLamports: 0n }),
        store: this.store.of(() => true),
        sights: this,
        outcomes: has.node === false ? null : this,
        leaders: () => this.leaders,
        slotNs: () => null,
        ...(has.tips && { tips: has.tips }),
        inspect: (wire) => {
          const found = this.readable.find((facts) => Buffer.compare(facts.wire, wire) === 0);
          if (!found) throw new Error("no transaction any more");
          return found;
        },
      },
      limits,
    );
  }

  watch(signature: Uint8Array, listener: Sight): () => void {
    if (this.isWatchFull) throw new ShredwayError("watch_refused", "full");
    const name = Buffer.from(signature).toString("hex");
    this.sights.set(name, listener);
    return () => void this.sights.delete(name);
  }

  see({ signatureBytes }: TransactionFacts, slot: bigint): void {
    const listener = this.sights.get(Buffer.from(signatureBytes).toString("hex"));
    listener?.({ slot, seenNs: this.clock.nowNs() });
  }

  async signatureStatuses(signatures: readonly string[]): Promise<(SignatureOutcome | null)[]> {
    this.asked.push([...signatures]);
    if (this.isNodeFailing) throw new Error("the node failed");
    return signatures.map((signature) => this.answers.get(signature) ?? null);
  }

  async isBlockhashValid(): Promise<boolean> {
    return !this.isBlockhashGone;
  }

  async nonceValue(): Promise<string | null> {
    return this.nonce;
  }

  facts(nonce = false): TransactionFacts {
    const bytes = () => this.random.fillBytes(new Uint8Array(32));
    return makeFacts(this.random, {
      lifetime: bytes(),
      ...(nonce ? { nonceAccount: bytes() } : {}),
    });
  }

  request(
    facts: TransactionFacts,
    options: Partial<SubmitOptions> = {},
    accountId = "ann",
  ): SubmitRequest {
    return {
      accountId,
      method: "sendTransaction",
      transactions: [facts],
      isBundle: false,
      options: { ...noOptions, ...options },
      receivedNs: this.clock.nowNs(),
    };
  }

  /** Submits, lets 100 ms pass, and tells how it went. */
  async submit(...request: Parameters<Desk["request"]>): Promise<string> {
    const submitted = this.pipeline.submit(this.request(...request)).then(
      () => "accepted",
      (error: unknown) =>
        error instanceof ShredwayError ? `${error.reason}: ${error.message}` : String(error),
    );
    await this.clock.advance(100);
    return submitted;
  }

  async state(facts: TransactionFacts, accountId = "ann"): Promise<string> {
    const [status] = await this.pipeline.statuses(accountId, [facts.signature]);
    return status ? `${status.state} ${status.reason}` : "unknown";
  }

  refuseAll(isFinal: boolean): void {
    for (const parcel of this.parcels.splice(0)) {
      const atNs = this.clock.nowNs();
      parcel.report({ kind: "sent", atNs, bytes: 1 });
      parcel.report({ kind: "refused", atNs, reason: "no", isFinal });
    }
  }
}
