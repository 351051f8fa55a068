// One life of the service, from its start to its crash: the real relay service, shred sales and store on
// the simulated network, disk and clock.

import { join } from "node:path";
import { ShredSalesService } from "../../src/app/shred-sales.ts";
import { parseEndpoint } from "../../src/core/addresses/addresses.ts";
import { type Config, completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger, type Logger } from "../../src/core/log.ts";
import type { SeededRandom } from "../../src/core/seeded-random.ts";
import type { SupervisedChild } from "../../src/gateway/tpu/confined-process.ts";
import {
  SignatureVerifier,
  TransactionInspector,
} from "../../src/gateway/transactions/transaction-checks.ts";
import type { SqlDriver } from "../../src/platform/store/driver.ts";
import { SqlDestinationStore } from "../../src/platform/store/tables/destination-store.ts";
import { SqlRegistrationStore } from "../../src/platform/store/tables/registration-store.ts";
import { SqlTierStore } from "../../src/platform/store/tables/tier-store.ts";
import { decodeBase58, encodeBase58 } from "../../src/relay/data-plane/base58.ts";
import type { NativeSimulatedRelay } from "../../src/relay/data-plane/native.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import type { LeaderNode } from "../../src/relay/leaders/rpc-leader-schedule.ts";
import type { LeaderSchedule } from "../../src/relay/leaders/schedule.ts";
import type { SlotNode } from "../../src/relay/leaders/slot-clock-updates.ts";
import { RelayService } from "../../src/relay/relay-service.ts";
import { relayOptionsOf } from "../../src/relay/relay-tables.ts";
import { destinationSettingsOf } from "../../src/shreds/destinations/destination-rules.ts";
import { AccountDestinations } from "../../src/shreds/destinations/destinations.ts";
import type { Probe } from "../../src/shreds/destinations/reachability-checks.ts";
import { PendingRegistrations } from "../../src/shreds/registrations/pending-registrations.ts";
import { TipRegistrar } from "../../src/shreds/registrations/registrar.ts";
import { AccountTiers } from "../../src/shreds/tiers/account-tiers.ts";
import { TierLeadership } from "../../src/shreds/tiers/tier-leadership.ts";
import type { TierRules } from "../../src/shreds/tiers/types.ts";
import { shredVersion } from "./cluster.ts";
import { GatewayLife } from "./gateway/gateway-life.ts";
import { MemoryNetwork, type PartnerListener } from "./gateway/memory-network.ts";
import type { ProcessNode } from "./gateway/node.ts";
import { FastPathThread } from "./http/fast-path-thread.ts";
import { MemoryCallers } from "./http/memory-callers.ts";
import { openDatabase } from "./open-database.ts";
import type { SimulatedPostgres } from "./postgres/simulated-postgres.ts";
import { accounts, type FixedDestination, sourceNames, tierNames } from "./scenario.ts";
import type { SimulatedDisk } from "./simulated-disk.ts";
import { ProcessClock, type WallTime } from "./simulated-time.ts";
import { tipAddress } from "./tips.ts";

export const listenAddress = "10.0.0.1:20000";
/** In the order of sourceNames. */
export const sourceAddresses = ["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4"];

export const tierRules: TierRules = {
  tiers: tierNames.map((name, i) => ({ name, thresholdLamports: [10n, 40n, 90n][i] ?? 0n })),
  windowMs: 15_000,
  graceMs: 5_000,
};

export interface OperatorChoices {
  readonly workers: number;
  readonly fixed: readonly FixedDestination[];
  /** Tiers of the sources that are forwarded. */
  readonly tiers: readonly string[];
}

const configs = new Map<string, Config>();

/** Each is checked once: the checks take longer than a start. */
export function configOf(choices: OperatorChoices): Config {
  const key = JSON.stringify(choices);
  const config = configs.get(key) ?? checkedConfigOf(choices);
  configs.set(key, config);
  return config;
}

function checkedConfigOf({ workers, fixed, tiers }: OperatorChoices): Config {
  const sources = sourceNames.map((name, i) => {
    const address = sourceAddresses[i] ?? "";
    return name === "own"
      ? { name, address, tier: "tier-1", forward: false }
      : { name, address, tier: tiers[i] ?? "tier-1" };
  });
  return completeConfig({
    relay: {
      listen: listenAddress,
      workers,
      shredVersion,
      tiers: [...tierNames],
      leaders: { file: "leaders.json" },
      sources,
      destinations: [...fixed],
    },
  });
}

/** The process of one life: its clock, its connections, and what the system closes when it ends. */
export class SimulatedProcess {
  readonly clock: ProcessClock;
  readonly network: MemoryNetwork;
  readonly callers: MemoryCallers;
  readonly fastPath: FastPathThread;
  readonly #closes: (() => void)[] = [];
  #isOver = false;

  constructor(seed: number, wall: WallTime, partners: ReadonlyMap<string, PartnerListener>) {
    const { time } = wall;
    const clock = new ProcessClock(wall);
    const thread = new FastPathThread({ seed, clock, nowNs: () => time.nowNs });
    this.clock = clock;
    this.fastPath = thread;
    this.network = new MemoryNetwork(clock, partners, thread);
    this.callers = new MemoryCallers({ time, clock, seed, thread });
  }

  /** Calls `close` when the process is killed. */
  onKill(close: () => void): void {
    if (this.#isOver) close();
    else this.#closes.push(close);
  }

  /** Nothing of it runs again. */
  kill(): void {
    this.#isOver = true;
    this.clock.end();
    this.network.kill();
    this.callers.kill();
    this.fastPath.handle.close();
    for (const close of this.#closes.splice(0)) close();
  }
}

export interface LifeOptions {
  readonly process: SimulatedProcess;
  readonly disk: SimulatedDisk;
  /** null: the store is SQLite. */
  readonly postgres: SimulatedPostgres | null;
  readonly config: Config;
  readonly schedule: LeaderSchedule;
  readonly node: ProcessNode;
  /** Starts the process of the QUIC connections; null: the gateway has no route to the leaders. */
  readonly startQuic: (() => SupervisedChild) | null;
  /** Whether the relay asks it for the slot. */
  readonly hasSlotNode: boolean;
  /** Identities of the alternative partners in base58. */
  readonly partners: ReadonlySet<string>;
  /** Whether a submission waits for the disk. */
  readonly isDurable: boolean;
  /** Most ended transactions in memory. */
  readonly endedMax: number;
  /** In lamports. */
  readonly minimumTip: number;
  readonly random: SeededRandom;
  /** A challenge leaves for this address. */
  readonly onChallenge: (address: string, datagram: Uint8Array) => void;
  /** Asks whether a receiver listens at this address. */
  readonly openProbe: (address: string) => Probe;
  /** Every line of the service's log. */
  readonly onLine: (line: string) => void;
}

interface OpenedService {
  readonly relay: Relay;
  readonly handle: NativeSimulatedRelay;
  readonly service: RelayService;
  readonly sales: ShredSalesService;
  readonly gateway: GatewayLife;
}

/** The dependencies that shred sales and gateway share. */
interface SharedDependencies {
  readonly service: RelayService;
  readonly log: Logger;
  readonly driver: SqlDriver;
  readonly verifier: SignatureVerifier;
}

/** The leader schedule is a file, so that nobody asks the node for it. */
function slotNodeOf({ slot }: ProcessNode): LeaderNode & SlotNode {
  const refuse = (): Promise<never> => Promise.reject(new Error("expected no such question"));
  return { host: "simulated node", slot, epochInfo: refuse, leaderSchedule: refuse };
}

/** The accounts of all customers, as the operator creates them before the first start. */
async function addAccounts(driver: SqlDriver): Promise<void> {
  const sql = `INSERT INTO accounts (id, name, created_ns) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO NOTHING`;
  const statements = accounts.map(({ id, name }) => ({ sql, params: [id, name, 0n] }));
  await driver.transaction(statements, "durable");
}

async function openSales(
  { process: { clock }, config, random, onChallenge, openProbe }: LifeOptions,
  { service, log, driver, verifier }: SharedDependencies,
): Promise<ShredSalesService> {
  const registrationStore = new SqlRegistrationStore(driver, {
    decode: decodeBase58,
    encode: encodeBase58,
  });
  const tierStore = new SqlTierStore(driver);
  const listener = parseEndpoint(listenAddress);
  const destinations = await AccountDestinations.open(
    {
      clock,
      store: new SqlDestinationStore(driver),
      log,
      random: (count) => random.fillBytes(new Uint8Array(count)),
      sendChallenge: onChallenge,
      openProbe,
      isOwnListener: ({ bytes, port }) =>
        port === listener.port && Buffer.compare(bytes, listener.bytes) === 0,
      regionProblem: () => null,
      isServedElsewhere: () => false,
      countLeases: () => 0,
    },
    destinationSettingsOf(config),
  );
  const registrations = new PendingRegistrations({
    clock,
    log,
    store: registrationStore,
    sources: null,
  });
  const tiers = new AccountTiers({ rules: tierRules, store: tierStore, clock, log });
  const leadership = new TierLeadership({
    store: tierStore,
    locks: { tryLock: (name, onLost) => driver.tryLock(name, onLost) },
    tiers,
    registrations,
    clock,
    log,
    random: () => random.share(),
  });
  const addresses = new Set([encodeBase58(tipAddress)]);
  const inspector = new TransactionInspector({ tipAddresses: [tipAddress], dontFrontPrefixes: [] });
  const registrar = new TipRegistrar({
    log,
    reader: { inspect: (wire) => inspector.inspect(wire), decode: decodeBase58 },
    // The threads of the verifier run in real time, so that the check runs in this thread.
    verifier: { verify: (wire) => Promise.resolve(verifier.verifyNow(wire)) },
    store: registrationStore,
    tiers,
    pending: registrations,
    present: () => ({
      slot: service.leaders().slot ?? null,
      slotNs: service.slots.slotClock.now(clock.nowNs())?.slotNs ?? null,
    }),
    addresses: () => addresses,
  });
  const sales = new ShredSalesService({
    config,
    relay: service,
    leadership,
    tiers,
    rules: tierRules,
    registrar,
    registrations,
    // A run is too short for a registration to be deleted.
    droppedRegistrations: { start: () => undefined, close: () => Promise.resolve() },
    settled: new Map(),
    destinations,
    challenges: { close: () => Promise.resolve() },
    leases: {},
    log,
  });
  await sales.start();
  return sales;
}

export class ServiceLife {
  readonly relay: Relay;
  readonly handle: NativeSimulatedRelay;
  readonly service: RelayService;
  readonly sales: ShredSalesService;
  readonly gateway: GatewayLife;

  /** Settles when customers are served. The database may be in any state that a crash left. */
  static async open(options: LifeOptions): Promise<ServiceLife> {
    const { process, disk, config, schedule, onLine } = options;
    const { clock, network, callers, fastPath } = process;
    const log = createLogger({ stream: { write: onLine }, level: "warn" });
    const opened = Relay.simulate({ ...relayOptionsOf(config.relay), prefault: false }, clock);
    process.onKill(() => opened.relay.close());
    const service = new RelayService({
      relay: opened.relay,
      config,
      readLeaders: () => schedule,
      readOwnAddresses: () => [],
      ...(options.hasSlotNode && { node: slotNodeOf(options.node) }),
      slotFile: join(disk.folder, "highest-slot.json"),
      log,
      clock,
    });
    await service.start();
    const driver = await openDatabase(options, log);
    await addAccounts(driver);
    const verifier = SignatureVerifier.open({ threads: 1, queueMax: 1 });
    process.onKill(() => verifier.close());
    const shared = { service, log, driver, verifier };
    const sales = await openSales(options, shared);
    const gateway = await GatewayLife.open({
      ...shared,
      clock,
      journalPath: options.postgres ? null : disk.databasePath,
      journalCalls: disk.journalCalls,
      isDurable: options.isDurable,
      endedMax: options.endedMax,
      minimumTip: options.minimumTip,
      relay: opened.relay,
      network,
      callers,
      fastPath: fastPath.handle,
      node: options.node,
      startQuic: options.startQuic,
      partners: options.partners,
      onKill: (close) => process.onKill(close),
    });
    return new ServiceLife({ ...opened, service, sales, gateway });
  }

  private constructor(opened: OpenedService) {
    const { relay, handle, service, sales, gateway } = opened;
    this.relay = relay;
    this.handle = handle;
    this.service = service;
    this.sales = sales;
    this.gateway = gateway;
  }

  /** The operator reloads the configuration. */
  reload(config: Config): void {
    this.service.apply(config);
    this.sales.apply(config);
  }
}
