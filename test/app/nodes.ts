// Several nodes on one real database, each with its own pipeline, keys, tip floor and failover; the
// test determines the state of the chain.

import { base58 } from "@scure/base";
import { nodeLockOf } from "../../src/core/node-lock-name.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import type { TransactionFacts } from "../../src/core/transactions/facts.ts";
import { keyRandomBytes } from "../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../src/gateway/accounts/create-key.ts";
import { KeyRing } from "../../src/gateway/accounts/key-ring.ts";
import { KeyUpdates } from "../../src/gateway/accounts/key-updates.ts";
import { NodeBundleCommitments } from "../../src/gateway/submission/bundle-commitments.ts";
import { Pipeline } from "../../src/gateway/submission/pipeline.ts";
import { StatusReader } from "../../src/gateway/submission/status-reader.ts";
import { SubmissionFailover } from "../../src/gateway/submission/submission-failover.ts";
import type {
  Commitment,
  OutboundTransaction,
  Outcomes,
  Route,
  SubmitRequest,
} from "../../src/gateway/submission/types.ts";
import { SqlKeyStore } from "../../src/platform/store/tables/key-store.ts";
import { SqlLandedTipStore } from "../../src/platform/store/tables/landed-tip-store.ts";
import { SqlPublicKeyStore } from "../../src/platform/store/tables/public-key-store.ts";
import { SqlSubmissionStore } from "../../src/platform/store/tables/submission-store.ts";
import { TipStatistics } from "../../src/tips/tip-statistics.ts";
import { makeFacts } from "../gateway/submission/model.ts";
import { capabilitiesOf, emptySnapshot } from "../gateway/submission/model-routes-and-store.ts";
import type { Databases } from "../platform/store/databases.ts";
import { NotificationRelay, type SharingDriver } from "../platform/store/notification-relay.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { TestPublicKeys } from "../support/gateway/public-keys.ts";

export const accountId = "ann";
const signatures = { decode: base58.decode, encode: base58.encode };

/** The shared part of the nodes: the database, the chain, and the notifications between them. */
export class Cluster {
  readonly notificationRelay = new NotificationRelay();
  readonly random = new SeededRandom(5);
  /** Slots by signature. */
  readonly landed = new Map<string, bigint>();
  /** Commitment of all of them. */
  commitment: Commitment = "confirmed";
  readonly submitted: TransactionFacts[] = [];
  readonly #databases: Databases;
  readonly #directory: string;

  private constructor(databases: Databases, place: string) {
    this.#databases = databases;
    this.#directory = place;
  }

  static async open(databases: Databases): Promise<Cluster> {
    const place = databases.location();
    await databases.migrated(place);
    return new Cluster(databases, place);
  }

  /** Starts a node: it holds its lock and has resumed its own submissions. */
  async node(name: string): Promise<Node> {
    const driver = this.notificationRelay.join(await this.#databases.driver(this.#directory));
    if ((await driver.tryLock(nodeLockOf(name))) === null) throw new Error("a second one");
    return Node.start(this, driver, name);
  }

  facts(): TransactionFacts {
    const { random } = this;
    const facts = makeFacts(random, { lifetime: random.fillBytes(new Uint8Array(32)) });
    this.submitted.push(facts);
    return facts;
  }
}

function outcomesOf(cluster: Cluster): Outcomes {
  return {
    signatureStatuses: async (requests) =>
      requests.map((signature) => {
        const slot = cluster.landed.get(signature);
        return slot === undefined ? null : { slot, err: null, commitment: cluster.commitment };
      }),
    blockhashState: async () => ({ isValid: true, slot: 1n }),
    nonceValue: async () => null,
  };
}

export class Node {
  readonly clock = new ManualClock();
  readonly driver: SharingDriver;
  readonly store: SqlSubmissionStore;
  readonly outbound: OutboundTransaction[] = [];
  readonly logged: string[] = [];
  readonly keys: SqlKeyStore;
  readonly keyRing = new KeyRing();
  readonly keyUpdates: KeyUpdates;
  readonly pipeline: Pipeline;
  readonly bundleCommitments: NodeBundleCommitments;
  readonly tips: TipStatistics;
  readonly failover: SubmissionFailover;

  static async start(cluster: Cluster, driver: SharingDriver, name: string): Promise<Node> {
    const clock = new ManualClock();
    const store = new SqlLandedTipStore(driver, signatures);
    const log = { warn: () => {} };
    const tips = await TipStatistics.open({ clock, log, store, isShared: true });
    const node = new Node(cluster, driver, { name, clock, tips });
    await node.keyUpdates.refresh();
    await node.pipeline.restore();
    node.failover.start();
    return node;
  }

  private constructor(
    cluster: Cluster,
    driver: SharingDriver,
    {
      name,
      clock,
      tips,
    }: { readonly name: string; readonly clock: ManualClock; readonly tips: TipStatistics },
  ) {
    const say = (...words: unknown[]) => void this.logged.push(JSON.stringify(words));
    const log = { info: say, warn: say, error: say };
    this.clock = clock;
    this.tips = tips;
    this.driver = driver;
    this.store = new SqlSubmissionStore(driver, signatures, name);
    this.keys = new SqlKeyStore(driver);
    this.keyUpdates = new KeyUpdates({
      clock,
      log,
      store: this.keys,
      keyRing: this.keyRing,
      publicKeyStore: new SqlPublicKeyStore(driver),
      publicKeys: new TestPublicKeys(clock, () => []).publicKeys,
    });
    const route = this.#route();
    const outcomes = outcomesOf(cluster);
    const reader = new StatusReader({ clock, node: outcomes, log });
    this.bundleCommitments = new NodeBundleCommitments({ clock, reader });
    this.pipeline = new Pipeline({
      clock,
      log,
      routes: () => [route],
      policy: () => ({
        denyLeaders: new Set(),
        minimumTipLamports: 0n,
        partners: new Set<string>(),
        partnerUnitLamports: 0n,
      }),
      store: this.store,
      landings: null,
      outcomes,
      leaders: () => ({ slot: 4n, current: "A", next: "B" }),
      slotNs: () => null,
      inspect: (wire) => {
        const found = cluster.submitted.find((facts) => Buffer.compare(facts.wire, wire) === 0);
        if (!found) throw new Error("no transaction of this cluster");
        return found;
      },
      landedTips: tips,
    });
    this.failover = new SubmissionFailover({
      clock,
      log,
      store: this.store,
      locks: driver,
      node: name,
      resume: (records) => this.pipeline.resume(records),
    });
  }

  #route(): Route {
    const capabilities = capabilitiesOf({
      name: "builder",
      kind: "block-builder",
      modes: ["transaction", "bundle"],
    });
    return {
      capabilities,
      isUp: true,
      offer: (parcel) => {
        this.outbound.push(parcel);
        parcel.report({ kind: "sent", atNs: this.clock.nowNs(), bytes: 200 });
        return true;
      },
      snapshot: () => emptySnapshot(capabilities),
      close: async () => {},
    };
  }

  submit(...transactions: TransactionFacts[]): Promise<void> {
    const isBundle = transactions.length > 1;
    const request: SubmitRequest = {
      accountId,
      method: isBundle ? "sendBundle" : "sendTransaction",
      transactions,
      isBundle,
      options: { swqosOnly: false, mevProtect: false, revertProtection: false, resendsMax: null },
      receivedNs: this.clock.nowNs(),
    };
    return this.pipeline.submit(request);
  }

  /** Status in the API's format. */
  async states(...transactions: TransactionFacts[]): Promise<(string | undefined)[]> {
    const requests = transactions.map(({ signature }) => signature);
    const statuses = await this.pipeline.statuses(accountId, requests);
    return statuses.map((status) => status?.state);
  }

  /** Signatures of the transactions that it sent, in order. */
  get sent(): string[] {
    return this.outbound.flatMap(({ transactions }) =>
      transactions.map(({ signature }) => signature),
    );
  }

  async makeKey(): Promise<{ readonly text: string; readonly id: string }> {
    const random = this.random(keyRandomBytes);
    const { text, key } = await createKey(
      this.keys,
      {
        accountName: "a",
        label: "",
        scopes: ["submit"],
        requestsPerSecond: null,
        burst: null,
        allowedRanges: [],
      },
      { random, nowNs: this.clock.nowNs() },
    );
    await this.keyUpdates.refresh();
    return { text, id: key.id };
  }

  random(count: number): Uint8Array {
    return crypto.getRandomValues(new Uint8Array(count));
  }

  knows({ text }: { readonly text: string }): boolean {
    return this.keyRing.find(text, this.clock.nowNs()) !== null;
  }

  /** Stops a node like a crash: its locks are free, and its clock no longer moves. */
  async kill(): Promise<void> {
    this.pipeline.stop();
    await this.driver.close();
  }
}
