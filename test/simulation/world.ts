// The world of one run: time, network, sources, service, customers and checks, driven by the events of a
// scenario. The same events with the same seed give the same run, byte by byte.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../src/core/configuration/configuration.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { encodeEndpoint } from "../../src/relay/data-plane/tables.ts";
import { Cluster } from "./cluster.ts";
import { Customers } from "./customers.ts";
import { GatewayWorld } from "./gateway/gateway-world.ts";
import { endedMaxOf } from "./gateway/memory-checks.ts";
import { LeaderSlots } from "./leader-slots.ts";
import { addressKey, type Sent, stepRelay } from "./network.ts";
import { isOnPostgres } from "./postgres/postgres-scenario.ts";
import { SimulatedPostgres } from "./postgres/simulated-postgres.ts";
import { hasLeaderRoute } from "./quic/quic-scenario.ts";
import { QuietTimes } from "./quiet-periods.ts";
import { Receivers } from "./receivers.ts";
import { type CheckedArrival, type Entitlement, RelayChecks, Violation } from "./relay-checks.ts";
import { RunDigest } from "./run-digest.ts";
import type { RunResult } from "./run-result.ts";
import {
  describeEvent,
  fixedAtStart,
  hasSlotNode,
  type ScenarioEvent,
  sourceNames,
  tierNames,
} from "./scenario.ts";
import {
  configOf,
  listenAddress,
  type OperatorChoices,
  ServiceLife,
  SimulatedProcess,
  sourceAddresses,
} from "./service-life.ts";
import { SimulatedDisk } from "./simulated-disk.ts";
import { SimulatedTime, slotMs, WallTime } from "./simulated-time.ts";
import { SlotChecks } from "./slot-checks.ts";
import { SlotProduction } from "./slot-production.ts";
import { Sources } from "./sources.ts";

/** Without arrivals, the relay runs this often. */
const idleMs = 100;
/** The same in a quiet period, so long after the last event. */
const quietIdleMs = 1_000;
const eventfulMs = 15_000;
/** A submission may be sent again for so long: two minutes, and more if the clock is set back. */
const maySendMs = 130_000;
/** After a start, a change of the clock or a stop of the cluster, slots may be out of range for this time. */
const unsettledMs = 15_000;
const endMs = 3_000;
/** The operator starts a service again that could not start because the disk failed. */
const restartMs = 1_000;

export interface WorldOptions {
  readonly seed: number;
  readonly events: readonly ScenarioEvent[];
  /** A folder that exists; the run uses and removes a new one inside. */
  readonly folder: string;
  /** Gets one line for everything that happens. */
  readonly trace?: ((line: string) => void) | undefined;
  /** Changes what the relay sends, so that a test of the checks has a defect to find. */
  readonly tamper?: ((sent: readonly Sent[]) => readonly Sent[]) | undefined;
}

/** A line of the log without the time, which is that of the machine. */
function withoutTime(line: string): string {
  return line.trim().replace(/"time":"[^"]*",/, "");
}

/** Half of the runs have two, for durable and for journaled submissions. */
function workersOf(seed: number): number {
  return (seed >>> 1) % 2 === 0 ? 1 : 2;
}

export class World {
  readonly #options: WorldOptions;
  readonly #folder: string;
  readonly #time = new SimulatedTime();
  readonly #wall = new WallTime(this.#time);
  readonly #quiet = new QuietTimes({
    time: this.#time,
    produce: (number, slot) => this.#guard(() => this.#slots.produceUndelivered(number, slot)),
    check: (isAsking) => this.#guard(() => this.#checkSlot(isAsking)),
    isEventful: () => this.#time.nowMs - this.#handledMs < maySendMs,
  });
  readonly #disk: SimulatedDisk;
  /** null: the store is SQLite. */
  #postgres: SimulatedPostgres | null = null;
  readonly #cluster: Cluster;
  readonly #sources: Sources;
  readonly #slots: SlotProduction;
  readonly #customers: Customers;
  readonly #receivers: Receivers;
  readonly #digest = new RunDigest();
  readonly #listener = encodeEndpoint(listenAddress);
  readonly #origins = sourceAddresses.map((address) => encodeEndpoint(`${address}:9`));
  readonly #workers: number;
  #choices: Omit<OperatorChoices, "workers"> = { fixed: fixedAtStart(), tiers: tierNames };
  readonly #gateway: GatewayWorld;
  /** null: the relay asks no node for the slot. */
  readonly #slotChecks: SlotChecks | null;
  #process: SimulatedProcess | null = null;
  #life: ServiceLife | null = null;
  #lives = 0;
  #checks: RelayChecks;
  /** When the last event happened. */
  #handledMs = 0;
  #unsettledUntilNs = 0;
  #arrivals: CheckedArrival[] = [];
  #violation: Violation | null = null;
  #steps = 0;
  #packets = 0;
  #sent = 0;
  #sentToCustomers = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#workers = workersOf(options.seed);
    this.#folder = mkdtempSync(join(options.folder, "simulation-"));
    this.#disk = new SimulatedDisk(this.#time, this.#folder);
    this.#cluster = new Cluster(options.seed, Math.ceil(this.#endMs / slotMs));
    this.#sources = new Sources(this.#cluster, options.seed, (atMs, arrivals) =>
      this.#arriveAt(atMs, arrivals),
    );
    this.#slots = new SlotProduction({
      time: this.#time,
      cluster: this.#cluster,
      sources: this.#sources,
      gateway: () => this.#gateway,
    });
    this.#checks = this.#newChecks();
    this.#gateway = new GatewayWorld({
      seed: options.seed,
      time: this.#time,
      gateway: () => this.#life?.gateway ?? null,
      slots: new LeaderSlots({
        cluster: this.#cluster,
        newest: () => this.#slots.newestOrFirst,
        isUnsettled: () => this.#time.nowNs < this.#unsettledUntilNs,
        isEstimated: () => this.#slots.isEstimated,
      }),
      leaders: hasLeaderRoute(options.seed) ? this.#cluster.identities : null,
      disk: this.#disk,
      note: (text) => this.#note(text),
      guard: (action) => this.#guard(action),
    });
    this.#receivers = new Receivers({
      time: this.#time,
      disk: this.#disk,
      life: () => this.#life,
    });
    const { chain, node } = this.#gateway;
    const nowMs = (): number => this.#time.nowMs;
    this.#slotChecks = hasSlotNode(options.seed) ? new SlotChecks({ chain, node, nowMs }) : null;
    this.#customers = new Customers({
      wall: this.#wall,
      disk: this.#disk,
      receivers: this.#receivers,
      life: () => this.#life,
      note: (text) => this.#note(text),
      guard: (action) => this.#guard(action),
    });
  }

  /** Ends at the first violation. */
  async run(): Promise<RunResult> {
    const { seed, events } = this.#options;
    try {
      if (isOnPostgres(seed)) this.#postgres = await this.#openPostgres(seed);
      this.#start();
      for (const event of events) {
        this.#time.at(event.atMs * 1e6, () => this.#guard(() => this.#handle(event)));
      }
      this.#idle();
      const lastMs = this.#endMs;
      for (let atMs = 0; atMs < lastMs && !this.#violation; atMs += slotMs)
        await this.#time.runUntil(Math.min(lastMs, atMs + slotMs) * 1e6);
    } finally {
      this.#process?.kill();
      this.#disk.end();
      this.#postgres?.end();
      rmSync(this.#folder, { recursive: true, force: true });
    }
    return {
      digest: this.#digest.hex(),
      steps: this.#steps,
      packets: this.#packets,
      sent: this.#sent,
      sentToCustomers: this.#sentToCustomers,
      ...this.#gateway.totals,
      simulatedMs: this.#time.nowMs,
      quietMs: this.#quiet.totalMs,
      violation: this.#violation,
    };
  }

  /** When the run ends. */
  get #endMs(): number {
    return (this.#options.events.at(-1)?.atMs ?? 0) + endMs;
  }

  #configOf(choices: Omit<OperatorChoices, "workers">): Config {
    return configOf({ ...choices, workers: this.#workers });
  }

  #openPostgres(seed: number): Promise<SimulatedPostgres> {
    return SimulatedPostgres.open({
      wall: this.#wall,
      disk: this.#disk,
      random: new SeededRandom(BigInt(seed) + 0x9057_90e5_0000n),
      note: (text) => this.#note(text),
    });
  }

  #newChecks(): RelayChecks {
    return new RelayChecks(this.#cluster, addressKey);
  }

  #guard(action: () => void): void {
    if (this.#violation) return;
    try {
      action();
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.#note(`VIOLATION ${error.message}`);
      this.#violation = error;
    }
  }

  #note(line: string): void {
    const text = line.replaceAll(this.#folder, "data");
    this.#digest.note(`${this.#time.nowNs} ${text}\n`);
    this.#options.trace?.(`${(this.#time.nowNs / 1e6).toFixed(3).padStart(12)}  ${text}`);
  }

  #log(line: string): void {
    const text = withoutTime(line).replaceAll(this.#folder, "data");
    this.#options.trace?.(`${" ".repeat(14)}log ${text}`);
  }

  #idle(): void {
    const isEventful = this.#time.nowMs - this.#handledMs < eventfulMs;
    const afterMs = this.#quiet.isNow && !isEventful ? quietIdleMs : idleMs;
    this.#time.at(this.#time.nowNs + afterMs * 1e6, () => {
      this.#step();
      this.#idle();
    });
  }

  #start(): void {
    const number = ++this.#lives;
    const beganMs = this.#time.nowMs;
    const { seed } = this.#options;
    const choices = this.#choices;
    const process = new SimulatedProcess(seed, this.#wall, this.#gateway.partners);
    this.#process = process;
    const opening = ServiceLife.open({
      process,
      isDurable: seed % 2 === 0,
      endedMax: endedMaxOf(seed),
      minimumTip: this.#gateway.minimumTip,
      node: this.#gateway.node.ofProcess(process.clock),
      startQuic: this.#gateway.quicStarter(this.#wall, (close) => process.onKill(close)),
      partners: this.#cluster.partners,
      hasSlotNode: this.#slotChecks !== null,
      disk: this.#disk,
      postgres: this.#postgres,
      config: this.#configOf(choices),
      schedule: this.#cluster.schedule,
      random: new SeededRandom(BigInt(seed) * 1000n + BigInt(number)),
      onChallenge: (address, datagram) => this.#customers.challenged(address, datagram),
      openProbe: (address) => this.#receivers.probe(address),
      onLine: (line) => this.#log(line),
    });
    opening.then(
      (life) =>
        this.#guard(() => {
          if (number !== this.#lives) return; // killed while it started
          this.#life = life;
          // A reload during the start takes effect after it.
          if (this.#choices !== choices) life.reload(this.#configOf(this.#choices));
          this.#checks = this.#newChecks();
          this.#unsettle();
          this.#slotChecks?.restarted();
          this.#note(`service ${number} runs`);
          this.#customers.restarted(life, this.#slots.newestOrFirst);
          this.#receivers.restarted(life);
          this.#gateway.restarted(life.gateway);
          this.#step();
        }),
      (error: unknown) =>
        this.#guard(() => {
          if (number !== this.#lives) return;
          if (this.#disk.hasFailedLately || this.#postgres?.wasDisturbedSince(beganMs)) {
            this.#note(`service ${number} could not start: ${String(error)}`);
            this.#crash(restartMs, new SeededRandom(BigInt(seed) * 1000n + BigInt(number)));
            return;
          }
          throw new Violation("the service starts after every crash", String(error));
        }),
    );
  }

  #unsettle(forMs = 0): void {
    const untilNs = this.#time.nowNs + (forMs + unsettledMs) * 1e6;
    this.#unsettledUntilNs = Math.max(this.#unsettledUntilNs, untilNs);
  }

  #handle(event: ScenarioEvent): void {
    this.#note(describeEvent(event));
    this.#handledMs = this.#time.nowMs;
    switch (event.kind) {
      case "slot":
        this.#checkSlot(true);
        if (!this.#gateway.chain.isStopped) this.#slots.produce(event, event.plan);
        return;
      case "cluster stops":
        this.#gateway.chain.stop(event.forMs);
        this.#unsettle(event.forMs);
        return;
      case "quiet":
        if (!event.hasBlocks) this.#gateway.chain.stop(event.slots * slotMs);
        this.#unsettle(event.slots * slotMs);
        this.#quiet.begin(event, event.number);
        return;
      case "forge":
        this.#sources.forge(event, event);
        return;
      case "replay":
        this.#sources.replay(event, event);
        return;
      case "capture": {
        const newest = this.#slots.newestOrFirst;
        const slots = event.slotsBack.map((back) => newest - BigInt(back));
        this.#sources.capture(event, { ...event, slots });
        return;
      }
      case "outage":
        this.#sources.interrupt(event.source, event.atMs + event.forMs);
        return;
      case "reload":
        this.#choices = event;
        this.#life?.reload(this.#configOf(event));
        return;
      case "fail destination":
        this.#failDestination(event.address, event.errno, event.forMs);
        return;
      case "set clock":
        this.#wall.set(event.byMs);
        this.#customers.clockWasSet(event.byMs);
        this.#receivers.observeAgain();
        this.#gateway.clockWasSet();
        this.#slotChecks?.clockWasSet();
        this.#unsettle();
        return;
      case "crash":
        this.#crash(event.downMs, this.#randomOf(event));
        return;
      case "disk fails":
        this.#disk.fail(event.failure, event.forMs, this.#randomOf(event));
        return;
      case "slow disk":
        this.#disk.slow(event.delayMs, event.forMs);
        return;
      case "register":
        this.#customers.register(event.customer, event.lamports, this.#slots.newestOrFirst);
        return;
      case "close receiver":
        this.#receivers.close(event.address, event.forMs);
        return;
      case "forge unreachable":
        this.#receivers.forge(event.address, event.forMs);
        return;
      case "add destination":
        void this.#customers.add(event.customer, event.address, event.answers);
        return;
      case "remove destination":
        void this.#customers.remove(event.customer, event.choice);
        return;
      case "send":
      case "send again":
      case "partners change":
      case "node changes":
      case "get nonce":
      case "send pair":
      case "send durable":
      case "advance nonce":
      case "send alt":
      case "reload gateway":
        this.#gateway.handle(event);
        return;
      case "leaders change":
      case "packets are lost":
      case "quic process fails":
        this.#gateway.handleQuic(event);
        return;
      case "connection breaks":
      case "postgres restarts":
      case "postgres stalls":
        this.#postgres?.handle(event);
    }
  }

  #checkSlot(isAsking: boolean): void {
    this.#gateway.check(isAsking);
    if (this.#life) this.#slotChecks?.check(this.#life.service.leaders().slot ?? null);
  }

  #failDestination(address: string, errno: number, forMs: number): void {
    const life = this.#life;
    life?.handle.failSends(encodeEndpoint(address), errno);
    this.#time.at(this.#time.nowNs + forMs * 1e6, () => {
      if (life && life === this.#life) life.handle.failSends(encodeEndpoint(address), 0);
    });
  }

  #randomOf({ number }: ScenarioEvent): SeededRandom {
    return new SeededRandom((BigInt(this.#options.seed) << 24n) + BigInt(number) + (1n << 61n));
  }

  #crash(downMs: number, random: SeededRandom): void {
    this.#process?.kill();
    this.#life = null;
    this.#lives++; // a start in progress is killed, too
    this.#disk.crash(random);
    this.#customers.crashed();
    this.#gateway.crashed();
    const lives = this.#lives;
    this.#time.at(this.#time.nowNs + downMs * 1e6, () => {
      if (lives === this.#lives) this.#start();
    });
  }

  #arriveAt(atMs: number, arrivals: readonly CheckedArrival[]): void {
    this.#time.at(atMs * 1e6, () => {
      if (this.#arrivals.length === 0) this.#time.at(this.#time.nowNs, () => this.#step()); // with all arrivals of this time
      this.#arrivals.push(...arrivals);
    });
  }

  #step(): void {
    this.#guard(() => {
      const life = this.#life;
      const arrivals = this.#arrivals;
      this.#arrivals = [];
      if (!life) return; // nobody listens
      const datagrams = arrivals.map(({ source, packet }) => ({
        from: this.#origins[source] ?? this.#listener,
        packet,
      }));
      const left = stepRelay(life.handle, this.#wall.nowNs(), this.#listener, datagrams);
      life.gateway.observeLandings();
      for (const { packet } of left) this.#gateway.relayed(packet);
      const sent = this.#options.tamper?.(left) ?? left;
      this.#steps++;
      this.#packets += arrivals.length;
      this.#sent += sent.length;
      if (arrivals.length > 0)
        this.#note(`${arrivals.length} packets arrive, ${sent.length} leave`);
      this.#digest.sent(sent);
      const entitlements = this.#entitlements(life);
      this.#receivers.check(sent, life.sales.destinations.list());
      const fixed = this.#choices.fixed.map(({ address }) => addressKey(address));
      for (const { to } of sent) if (!fixed.includes(to)) this.#sentToCustomers++;
      this.#checks.check({
        nowMs: this.#time.nowMs,
        arrivals,
        sent,
        sources: sourceNames.map((name, i) => ({ name, tier: this.#tierOf(i) })),
        entitlements,
        snapshot: () => life.relay.snapshot(),
        newestSlot: this.#slots.newest,
        isUnsettled: this.#time.nowNs < this.#unsettledUntilNs,
      });
    });
  }

  /** -1: for own use. */
  #tierOf(source: number): number {
    return tierNames.indexOf(this.#choices.tiers[source] ?? "");
  }

  #entitlements(life: ServiceLife): Map<string, Entitlement> {
    const all = this.#customers.entitlements(life);
    for (const { address, tier } of this.#choices.fixed) {
      const number = tierNames.indexOf(tier);
      all.set(addressKey(address), { may: number, must: number });
    }
    return all;
  }
}
