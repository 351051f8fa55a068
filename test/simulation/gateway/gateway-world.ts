// Everything around the gateway in one run: chain, node, partners, senders and checks.

import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { SlotPlan } from "../cluster.ts";
import { HttpCallers } from "../http/http-callers.ts";
import type { LeaderSlots } from "../leader-slots.ts";
import { LeaderNetwork } from "../quic/leader-network.ts";
import { QuicChild } from "../quic/quic-child.ts";
import type { QuicAction } from "../quic/quic-scenario.ts";
import type { SimulatedDisk } from "../simulated-disk.ts";
import { type SimulatedTime, slotMs, type WallTime } from "../simulated-time.ts";
import { Chain, type SlotContents } from "./chain.ts";
import { fundingAddress, type GatewayLife } from "./gateway-life.ts";
import type { GatewayAction } from "./gateway-scenario.ts";
import { checkMemory, forgetsEnded } from "./memory-checks.ts";
import type { PartnerListener } from "./memory-network.ts";
import { MinimumTips } from "./minimum-tips.ts";
import { SimulatedNode } from "./node.ts";
import { NonceChecks } from "./nonce-checks.ts";
import { NonceCustomers, ownNonceAccounts } from "./nonce-customers.ts";
import { leadersName, type PartnerMood, type PartnerName, SimulatedPartner } from "./partners.ts";
import { Senders } from "./senders.ts";
import { SubmissionChecks } from "./submission-checks.ts";
import { Transactions } from "./transactions.ts";

/** A copy waits for its leader so long, and a little longer in the process. */
const copyWaitMs = 5_000;

interface GatewayWorldOptions {
  readonly seed: number;
  readonly time: SimulatedTime;
  /** The gateway; null: the service does not run. */
  readonly gateway: () => GatewayLife | null;
  readonly slots: LeaderSlots;
  /** Identities of the leaders in base58; null: the gateway has no route to them. */
  readonly leaders: readonly string[] | null;
  readonly disk: SimulatedDisk;
  /** Writes to the trace. */
  readonly note: (text: string) => void;
  /** Runs an action that may throw Violation. */
  readonly guard: (action: () => void) => void;
}

export class GatewayWorld {
  readonly chain: Chain;
  readonly node: SimulatedNode;
  /** Partners by host name. */
  readonly partners: ReadonlyMap<string, PartnerListener>;
  readonly #options: GatewayWorldOptions;
  readonly #partners: Readonly<Record<PartnerName, SimulatedPartner>>;
  readonly #leaders: LeaderNetwork | null;
  /** The process of the QUIC connections; null: none was started in this life. */
  #quicChild: QuicChild | null = null;
  readonly #http: HttpCallers;
  readonly #minimumTips: MinimumTips;
  readonly #senders: Senders;
  readonly #checks: SubmissionChecks;
  readonly #nonceChecks: NonceChecks;
  readonly #nonces: NonceCustomers;
  /** Requests that the fast path has sent: in earlier lives of the service, and in this one. */
  #takenBefore = 0;
  #takenNow = 0;

  constructor(options: GatewayWorldOptions) {
    const { time, gateway, disk, note, guard } = options;
    const transactions = new Transactions();
    const nowMs = (): number => time.nowMs;
    const chain = new Chain(ownNonceAccounts(transactions), nowMs);
    const nodes = () => this.#leaders?.nodes ?? [];
    const node = new SimulatedNode({ chain, nowMs, fundingAddress, nodes });
    this.chain = chain;
    this.node = node;
    const partnerOf = (name: PartnerName): SimulatedPartner =>
      new SimulatedPartner({
        name,
        time,
        transactions,
        passOn: (passed, isBundle) => chain.arrive(passed, isBundle),
        onCall: (from, signed) => guard(() => this.#checks.received(from, signed)),
        onFinalRefusal: (from, signature) => this.#checks.refusedForGood(from, signature),
      });
    const partners = {
      staked: partnerOf("staked"),
      costly: partnerOf("costly"),
      builder: partnerOf("builder"),
      auction: partnerOf("auction"),
    };
    this.#options = options;
    this.#partners = partners;
    this.partners = new Map(Object.entries(partners));
    const leaders = options.leaders
      ? new LeaderNetwork({
          seed: options.seed,
          time,
          identities: options.leaders,
          transactions,
          passOn: (passed) => chain.arrive(passed, false),
          onDeparture: (identity, signed) =>
            guard(() => this.#checks.leftForLeader(this.#isNear(identity), signed)),
        })
      : null;
    this.#leaders = leaders;
    const views = { ...partners, ...(leaders && { [leadersName]: leaders }) };
    const checks = new SubmissionChecks({
      chain,
      partners: views,
      disk,
      nowMs,
      forgetsEnded: forgetsEnded(options.seed),
    });
    this.#checks = checks;
    const nonceChecks = new NonceChecks({ chain, node, disk, submissions: checks, nowMs });
    const minimumTips = new MinimumTips(nowMs);
    const http = new HttpCallers({ seed: options.seed, time, note, guard });
    const senders = new Senders({
      chain,
      transactions,
      partners,
      checks,
      nonceChecks,
      gateway,
      http,
      minimumTips,
      slots: options.slots,
      disk,
      nowMs,
      note,
      guard,
    });
    this.#nonceChecks = nonceChecks;
    this.#senders = senders;
    this.#http = http;
    this.#minimumTips = minimumTips;
    this.#nonces = new NonceCustomers({
      chain,
      transactions,
      checks: nonceChecks,
      calls: senders,
      nowMs,
      guard,
    });
  }

  handle(event: GatewayAction): void {
    switch (event.kind) {
      case "send":
        this.#senders.send(event);
        return;
      case "send again":
        this.#senders.sendAgain(event);
        return;
      case "send alt":
        this.#senders.sendAlt(event);
        return;
      case "get nonce":
        void this.#nonces.getNonce(event);
        return;
      case "send pair":
        void this.#nonces.sendPair(event);
        return;
      case "send durable":
        this.#nonces.sendDurable(event);
        return;
      case "advance nonce":
        for (let i = 0; i < event.times; i++)
          this.#later(i * slotMs, () => this.#nonces.advance(event));
        return;
      case "reload gateway":
        this.#minimumTips.set(event.minimumTip);
        this.#options.gateway()?.reload(event.minimumTip);
        return;
      case "partners change":
        for (const name of event.partners) this.#change(this.#partners[name], event);
        return;
      case "node changes":
        this.node.mood = event.mood;
        this.#later(event.forMs, () => {
          if (this.node.mood === event.mood) this.node.mood = "healthy";
        });
    }
  }

  #isNear(identity: string): boolean {
    const goodSinceMs = this.#leaders?.goodSinceMs ?? null;
    const isGood = goodSinceMs !== null && this.#options.time.nowMs - goodSinceMs > copyWaitMs;
    return this.#options.slots.isNear(identity, !isGood);
  }

  handleQuic(event: QuicAction): void {
    switch (event.kind) {
      case "leaders change":
        this.#leaders?.setMood(event.leaders, event.mood, event.forMs);
        return;
      case "packets are lost":
        this.#leaders?.lose(event.share, event.forMs);
        return;
      case "quic process fails":
        this.#leaders?.processFailed();
        this.#quicChild?.fail(event.failure);
    }
  }

  /** Starts the processes of the QUIC connections in one life of the service; null: it has none. */
  quicStarter(wall: WallTime, onKill: (close: () => void) => void): (() => QuicChild) | null {
    const leaders = this.#leaders;
    if (!leaders) return null;
    return () => {
      const child = new QuicChild(wall, leaders);
      onKill(() => child.endWithGateway());
      this.#quicChild = child;
      return child;
    };
  }

  /** In lamports. */
  get minimumTip(): number {
    return this.#minimumTips.present;
  }

  /** The contents of a slot. `number`: of the slot's event. */
  fill(number: number, plan: SlotPlan): SlotContents {
    const seed = (BigInt(this.#options.seed) << 24n) + BigInt(number) + (1n << 60n);
    return this.chain.fill(plan, new SeededRandom(seed));
  }

  /** The leader of this slot began its block again, with a marker in this FEC set. */
  restartedBlock(slot: bigint, marker: number, withdrawn: ReadonlySet<string>): void {
    this.#checks.withdrawals.restartedBlock(slot, marker, withdrawn);
  }

  /** The relay has sent this shred, so that its deshredder has it. */
  relayed(packet: Uint8Array): void {
    this.#checks.withdrawals.relayed(packet, this.#options.time.nowMs);
  }

  clockWasSet(): void {
    this.#checks.withdrawals.clockWasSet();
    this.#checks.landedTips.unsettle();
  }

  /** Compares what is known, and lets customers ask if `isAsking`. Called once in each slot. */
  check(isAsking: boolean): void {
    const gateway = this.#options.gateway();
    if (!gateway) return;
    const { counts, routes, fastPath } = gateway;
    this.#takenNow = fastPath.taken;
    this.#checks.check(this.node.mood, counts, routes, fastPath);
    this.#checks.landedTips.check(gateway.shownTips);
    this.#nonceChecks.check();
    checkMemory(this.#options.seed, counts, routes);
    if (isAsking) this.#senders.ask();
  }

  get totals(): SubmissionChecks["totals"] & { readonly taken: number } {
    return { ...this.#checks.totals, taken: this.#takenBefore + this.#takenNow };
  }

  crashed(): void {
    this.#takenBefore += this.#takenNow;
    this.#takenNow = 0;
    this.#http.crashed();
    this.#checks.crashed();
    for (const partner of Object.values(this.#partners)) {
      partner.calls = 0;
      partner.unanswered = 0;
    }
    this.#leaders?.crashed();
    this.#quicChild = null;
  }

  restarted(gateway: GatewayLife): void {
    gateway.reload(this.minimumTip); // it may have changed during the start
    this.#http.restarted(gateway.callers);
    this.#nonceChecks.restarted();
    this.#senders.restarted(gateway);
  }

  #change(
    partner: SimulatedPartner,
    { mood, forMs }: { readonly mood: PartnerMood; readonly forMs: number },
  ): void {
    partner.setMood(mood);
    this.#later(forMs, () => {
      if (partner.mood === mood) partner.setMood("accepts");
    });
  }

  #later(delayMs: number, action: () => void): void {
    const { time } = this.#options;
    time.at(time.nowNs + delayMs * 1e6, action);
  }
}
