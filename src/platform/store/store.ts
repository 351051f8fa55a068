// Store: the state that survives the end of the process.
//
// Opened by the service and by the commands that change keys. Several processes may open the same folder
// or the same PostgreSQL. It combines the database driver, the schema and the tables.

import { hostname } from "node:os";
import type { Clock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import type { PublicKeyStore } from "../../gateway/accounts/public-key-types.ts";
import type { KeyStore } from "../../gateway/accounts/types.ts";
import type { ManagedNonceStore } from "../../gateway/nonces/types.ts";
import type { SigningKeyStore } from "../../gateway/receipts/types.ts";
import type { SubmissionLister, SubmissionStore } from "../../gateway/submission/types.ts";
import { decodeBase58, encodeBase58 } from "../../relay/data-plane/base58.ts";
import type { DestinationStore } from "../../shreds/destinations/destination-types.ts";
import type {
  DroppedRegistrationStore,
  RegistrationStore,
} from "../../shreds/registrations/registration-types.ts";
import type { TierStore } from "../../shreds/tiers/types.ts";
import type { LandedTipStore } from "../../tips/tip-types.ts";
import { isInUse, prepareDataFolder } from "./data-folder.ts";
import type { Durability, SqlDriver } from "./driver.ts";
import { JournaledSubmissionStore } from "./journal/journaled-submission-store.ts";
import { replayJournal } from "./journal/replay.ts";
import { SubmissionJournal } from "./journal/submission-journal.ts";
import { migrate, requireNewest } from "./migrations.ts";
import { NodeLock } from "./node-lock.ts";
import { PostgresDriver } from "./postgres/driver.ts";
import { versionIfAny } from "./snapshot.ts";
import { SqliteDriver } from "./sqlite/driver.ts";
import { requireStart } from "./start-check.ts";
import { counted, StoreCounts, type StoreNumbers } from "./store-counts.ts";
import { SqlAuditStore } from "./tables/audit-store.ts";
import { SqlDestinationStore } from "./tables/destination-store.ts";
import { SqlDroppedRegistrationStore } from "./tables/dropped-registration-store.ts";
import { SqlKeyStore } from "./tables/key-store.ts";
import { SqlLandedTipStore } from "./tables/landed-tip-store.ts";
import { type NodeStore, SqlNodeStore } from "./tables/node-store.ts";
import { SqlManagedNonceStore } from "./tables/nonce-store.ts";
import { SqlPublicKeyStore } from "./tables/public-key-store.ts";
import { SqlRegistrationStore } from "./tables/registration-store.ts";
import type { SignatureCodec } from "./tables/signature-codec.ts";
import { SqlSigningKeyStore } from "./tables/signing-key-store.ts";
import { columns, SqlSubmissionStore } from "./tables/submission-store.ts";
import { SqlTierStore } from "./tables/tier-store.ts";

export interface StoreOptions {
  /** Created if missing; unused with `postgres`. */
  readonly directory: string;
  /**
   * URL of a PostgreSQL (one or several servers) that stores everything, instead of a file in the
   * folder.
   */
  readonly postgres?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Rejects a folder without a database, and a database without tables, instead of creating them.
   */
  readonly mustExist?: boolean;
  /** Neither migrates the schema nor restores the journal; rejects a database of an older version. */
  readonly isOnlyRead?: boolean;
  /**
   * Rejects a folder that another service uses, and a PostgreSQL on which another service has this
   * node's name. Otherwise two services would send and end the same submissions.
   */
  readonly isService?: boolean;
  /** Name of the node, unique on the database. Default: the host name. */
  readonly node?: string | undefined;
  /** Whether submissions wait for the disk. Default: true. */
  readonly durableSubmissions?: boolean;
  /** Its abort ends all connections to PostgreSQL at once: every pending and later call fails. */
  readonly interrupted?: AbortSignal | undefined;
}

const journalWarningMs = 10_000;

/** A write of one row that changes nothing. */
const unchangedVersion = { sql: "UPDATE schema_version SET version = version", params: [] };
/** On a full disk, the database's files often have space for a few rows, but not for a submission. */
const trialWrites = 16;

const codec: SignatureCodec = { decode: decodeBase58, encode: encodeBase58 };

type CountedOptions = StoreOptions & { readonly counts: StoreCounts };

interface Opened {
  readonly driver: SqlDriver;
  /** The SQLite file; null with PostgreSQL. */
  readonly path: string | null;
  /** The database's type for bytes. */
  readonly blobType: string;
  readonly warnings: readonly string[];
}

interface StoreDependencies extends Opened {
  /** `driver` without its counts. */
  readonly uncounted: SqlDriver;
  readonly nodeLock: NodeLock | null;
  readonly isOnFile: boolean;
  readonly node: string;
  readonly counts: StoreCounts;
  readonly submissions: SqlSubmissionStore;
  /** Null: submissions wait for their commit. */
  readonly journaled: JournaledSubmissionStore | null;
}

async function openSqlite(options: CountedOptions): Promise<Opened> {
  const { databasePath: path, ...folder } = prepareDataFolder(options.directory, options.mustExist);
  const { clock, log, isService, counts } = options;
  const lock = isService && { lockPath: folder.lockPath };
  const driver = await SqliteDriver.open({ path, clock, log, counts, ...lock });
  return { driver, path, blobType: "blob", warnings: folder.warnings };
}

async function openPostgres(url: string, options: CountedOptions): Promise<Opened> {
  const { clock, log, counts, mustExist = false, interrupted } = options;
  const driver = await PostgresDriver.open({ url, clock, log, counts, mustExist, interrupted });
  return { driver, path: null, blobType: "bytea", warnings: driver.warnings };
}

/** Brings what a killed service had acknowledged into the database, unless a service runs. */
async function replay(
  { path, driver }: Opened,
  { directory, isService = false, log }: CountedOptions,
): Promise<void> {
  if (path === null || (!isService && isInUse(directory) === true)) return;
  try {
    const count = await replayJournal(path, driver);
    if (count > 0 && isService) log.info({ count }, "store: submissions restored from the journal");
  } catch (cause) {
    if (cause instanceof ShredwayError) throw cause;
    throw new ShredwayError("store_failed", `${path}: ${messageOf(cause)}`, { cause });
  }
}

/** Throws ShredwayError "store_failed". */
function journaledOver(
  database: SqlSubmissionStore,
  path: string,
  { clock, log }: CountedOptions,
): JournaledSubmissionStore {
  const warning = new RareWarning({ clock, log }, journalWarningMs);
  const onFailure = (error: unknown): void =>
    warning.give(() => `store: the journal of submissions failed: ${messageOf(error)}`);
  try {
    const journal = new SubmissionJournal(path, columns);
    return new JournaledSubmissionStore({ database, journal, clock, onFailure });
  } catch (cause) {
    throw new ShredwayError("store_failed", `${path}: ${messageOf(cause)}`, { cause });
  }
}

export class Store {
  readonly keys: KeyStore;
  readonly publicKeys: PublicKeyStore;
  readonly submissions: SubmissionStore & SubmissionLister;
  readonly destinations: DestinationStore;
  readonly registrations: RegistrationStore;
  readonly droppedRegistrations: DroppedRegistrationStore;
  readonly tiers: TierStore;
  readonly landedTips: LandedTipStore;
  readonly nonces: ManagedNonceStore;
  readonly nodes: NodeStore;
  readonly signingKeys: SigningKeyStore;
  readonly audit: SqlAuditStore;

  /** Locks that at most one process holds. */
  readonly locks: Pick<SqlDriver, "tryLock">;
  /** Name of this process on a shared database; "": the database is not shared. */
  readonly node: string;
  /** Problems for the operator. */
  readonly warnings: readonly string[];
  /** Whether the database is a file of this node. */
  readonly isOnFile: boolean;
  readonly #nodeLock: NodeLock | null;
  readonly #driver: SqlDriver;
  readonly #uncounted: SqlDriver;
  readonly #counts: StoreCounts;
  readonly #journaled: JournaledSubmissionStore | null;

  /** Throws ShredwayError "store_failed", or "store_newer" for a database of a newer version. */
  static async open(given: StoreOptions): Promise<Store> {
    const counts = new StoreCounts(() => given.clock.monotonicNs());
    const options = { ...given, counts };
    const { postgres, isService = false, clock, log, interrupted } = options;
    await requireStart(options, clock, interrupted);
    const isOnFile = postgres === undefined;
    const opened = await (isOnFile ? openSqlite(options) : openPostgres(postgres, options));
    const node = isOnFile ? "" : (options.node ?? hostname());
    const driver = counted(opened.driver, counts);
    let nodeLock: NodeLock | null = null;
    try {
      // Only one service uses a file; its own lock guards that.
      if (isService && !isOnFile) nodeLock = await NodeLock.take({ driver, node, clock, log });
      if (options.isOnlyRead === true) {
        requireNewest(await versionIfAny(opened.driver, isOnFile ? "sqlite" : "postgres"));
      } else {
        await migrate(opened.driver, opened.blobType);
        await replay(opened, options);
      }
      const { durableSubmissions = true } = options;
      const durability: Durability = durableSubmissions ? "durable" : "survives-kill";
      const submissions = new SqlSubmissionStore(driver, codec, node, durability);
      const journaled =
        isService && opened.path !== null && !durableSubmissions
          ? journaledOver(submissions, opened.path, options)
          : null;
      return new Store({
        ...opened,
        driver,
        uncounted: opened.driver,
        nodeLock,
        isOnFile,
        node,
        counts,
        submissions,
        journaled,
      });
    } catch (error) {
      await nodeLock?.close();
      await driver.close();
      throw error;
    }
  }

  private constructor(dependencies: StoreDependencies) {
    const { driver, nodeLock, isOnFile, node, counts, warnings } = dependencies;
    const { submissions, journaled } = dependencies;
    this.#driver = driver;
    this.#uncounted = dependencies.uncounted;
    this.#nodeLock = nodeLock;
    this.#counts = counts;
    this.isOnFile = isOnFile;
    this.node = node;
    this.locks = { tryLock: (name, onLost) => driver.tryLock(name, onLost) };
    this.keys = new SqlKeyStore(driver);
    this.publicKeys = new SqlPublicKeyStore(driver);
    this.submissions = journaled ?? submissions;
    this.#journaled = journaled;
    this.destinations = new SqlDestinationStore(driver);
    this.registrations = new SqlRegistrationStore(driver, codec);
    this.droppedRegistrations = new SqlDroppedRegistrationStore(driver);
    this.tiers = new SqlTierStore(driver);
    this.landedTips = new SqlLandedTipStore(driver, codec);
    this.nonces = new SqlManagedNonceStore(driver);
    this.nodes = new SqlNodeStore(driver);
    this.audit = new SqlAuditStore(driver, codec);
    this.signingKeys = new SqlSigningKeyStore(driver);
    this.warnings = warnings;
  }

  /**
   * Rejects with ShredwayError "store_failed" if the database does not answer. After a failed write it
   * writes, because only a write can show that the database stores changes again.
   */
  async ping(): Promise<void> {
    await this.#driver.query("SELECT 1", []);
    if (!this.#counts.numbers().isWriteFailing) return;
    await this.#counts.watch("transaction", this.#tryWrites());
  }

  /** Counted as one transaction, so that the first of the writes does not hide a failure of a later one. */
  async #tryWrites(): Promise<void> {
    for (let i = 0; i < trialWrites; i++) {
      await this.#uncounted.transaction([unchangedVersion], "durable", []);
    }
  }

  numbers(): StoreNumbers & { readonly journaled: number } {
    return { ...this.#counts.numbers(), journaled: this.#journaled?.waiting ?? 0 };
  }

  /** Settles after all calls are stored and the database is closed. Idempotent. */
  async close(): Promise<void> {
    await this.#journaled?.close();
    await this.#driver.close();
    // Releases its locks and stops acquiring them.
    await this.#nodeLock?.close();
  }
}
