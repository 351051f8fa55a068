// The store: what must be there again after the process ended, however it ended.
//
// Opened by main and by the commands that change keys; several processes may have the same folder, or
// the same PostgreSQL, open. Puts together the database's driver, the schema and what is kept in it.

import { hostname } from "node:os";
import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { nodeLockOf } from "../../core/node-lock-name.ts";
import type { KeyStore } from "../../gateway/accounts/types.ts";
import type { ManagedNonceStore } from "../../gateway/nonces/types.ts";
import type { SubmissionLister, SubmissionStore } from "../../gateway/submission/types.ts";
import { decodeBase58, encodeBase58 } from "../../relay/data-plane/base58.ts";
import type { DestinationStore } from "../../shreds/destinations/destination-types.ts";
import type { RegistrationStore } from "../../shreds/registrations/registration-types.ts";
import type { TierStore } from "../../shreds/tiers/types.ts";
import type { LandedTipStore } from "../../tips/tip-types.ts";
import { prepareDataFolder } from "./data-folder.ts";
import type { SqlDriver } from "./driver.ts";
import { migrate } from "./migrations.ts";
import { MovableDriver } from "./movable-driver.ts";
import { NodeLock } from "./node-lock.ts";
import { PostgresDriver } from "./postgres/driver.ts";
import { SqliteDriver } from "./sqlite/driver.ts";
import { StoreCounts, type StoreNumbers } from "./store-counts.ts";
import { SqlDestinationStore } from "./tables/destination-store.ts";
import { SqlKeyStore } from "./tables/key-store.ts";
import { SqlLandedTipStore } from "./tables/landed-tip-store.ts";
import { SqlManagedNonceStore } from "./tables/nonce-store.ts";
import { SqlRegistrationStore } from "./tables/registration-store.ts";
import type { SignatureCodec } from "./tables/signature-codec.ts";
import { SqlSubmissionStore } from "./tables/submission-store.ts";
import { SqlTierStore } from "./tables/tier-store.ts";
import { finishMove, type MoveSummary, moveToPostgres } from "./transfer/move.ts";
import { checkUnused, placeInForce } from "./transfer/place.ts";

export interface StoreOptions {
  /** Made when it is missing; of no use with `postgres`. */
  readonly directory: string;
  /** URL of a PostgreSQL (one server or several) that keeps everything, instead of a file in the folder. */
  readonly postgres?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Refuses a folder without a database, and a database without tables, instead of making them. */
  readonly mustExist?: boolean;
  /**
   * Refuses a folder that another service uses, and a PostgreSQL on which another one goes by the name of
   * this node: two would send, and end, the same submissions.
   */
  readonly isService?: boolean;
  /** Name of the node, like no other service's on the same database. Default: the machine's host name. */
  readonly node?: string | undefined;
}

const codec: SignatureCodec = { decode: decodeBase58, encode: encodeBase58 };

type CountedOptions = StoreOptions & { readonly counts: StoreCounts };

interface Opened {
  readonly driver: SqlDriver;
  /** The database's word for bytes. */
  readonly blobType: string;
  readonly warnings: readonly string[];
}

async function openSqlite(options: CountedOptions): Promise<Opened> {
  const { databasePath: path, ...folder } = prepareDataFolder(options.directory, options.mustExist);
  const { clock, log, isService, counts } = options;
  const lock = isService && { lockPath: folder.lockPath };
  const driver = await SqliteDriver.open({ path, clock, log, counts, ...lock });
  return { driver, blobType: "blob", warnings: folder.warnings };
}

async function openPostgres(url: string, options: CountedOptions): Promise<Opened> {
  const { clock, log, counts, mustExist = false } = options;
  const driver = await PostgresDriver.open({ url, clock, log, counts, mustExist });
  return { driver, blobType: "bytea", warnings: driver.warnings };
}

export class Store {
  readonly keys: KeyStore;
  readonly submissions: SubmissionStore & SubmissionLister;
  readonly destinations: DestinationStore;
  readonly registrations: RegistrationStore;
  readonly tiers: TierStore;
  readonly landedTips: LandedTipStore;
  readonly nonces: ManagedNonceStore;

  /** What one process in the world holds at a time. */
  readonly locks: Pick<SqlDriver, "tryLock">;
  /** Of this process among those that share the database; "": it is its alone. */
  readonly node: string;
  /** What an operator should mend. */
  readonly warnings: readonly string[];
  readonly #nodeLock: NodeLock | null;
  readonly #driver: MovableDriver;
  readonly #base: SqlDriver;
  readonly #options: CountedOptions;
  readonly #ending = new AbortController();
  #move: Promise<void> | undefined;
  #isOnFile: boolean;

  /** Throws ShredwayError "store_failed", or "store_newer" for a newer version's database. */
  static async open(given: StoreOptions): Promise<Store> {
    const options = { ...given, counts: new StoreCounts(() => given.clock.monotonicNs()) };
    const { postgres, warning } = await placeInForce(options, options.clock);
    const opened = await (postgres === undefined
      ? openSqlite(options)
      : openPostgres(postgres, options));
    const { driver: base, blobType } = opened;
    const { node = hostname(), isService = false, clock, log } = options;
    const driver = new MovableDriver(base, options);
    let nodeLock: NodeLock | null = null;
    let isAlone = true;
    try {
      if (isService)
        nodeLock = await NodeLock.take({
          driver,
          node: blobType === "blob" ? "" : node,
          clock,
          log,
        });
      await finishMove(base, options.directory);
      await migrate(base, blobType);
      // Whoever was moved here while it runs goes on without a name.
      const nameless =
        isService && blobType !== "blob" && (await driver.tryLock(nodeLockOf(""), () => {}));
      isAlone = nameless !== null;
      if (nameless) await nameless.release();
    } catch (error) {
      await nodeLock?.close();
      await driver.close();
      throw error;
    }
    const warnings = warning === undefined ? opened.warnings : [...opened.warnings, warning];
    return new Store({ ...opened, warnings }, { driver, nodeLock, isAlone }, { ...options, node });
  }

  private constructor(
    { driver: base, blobType, warnings }: Opened,
    {
      driver,
      nodeLock,
      isAlone,
    }: {
      readonly driver: MovableDriver;
      readonly nodeLock: NodeLock | null;
      /** No service without a name runs on the database. */
      readonly isAlone: boolean;
    },
    options: CountedOptions & { readonly node: string },
  ) {
    this.#driver = driver;
    this.#base = base;
    this.#nodeLock = nodeLock;
    this.#options = options;
    this.#isOnFile = blobType === "blob";
    this.node = this.#isOnFile ? "" : options.node;
    this.locks = { tryLock: (name, onLost) => driver.tryLock(name, onLost) };
    this.keys = new SqlKeyStore(driver);
    this.submissions = new SqlSubmissionStore(driver, this.node, isAlone);
    this.destinations = new SqlDestinationStore(driver);
    this.registrations = new SqlRegistrationStore(driver, codec);
    this.tiers = new SqlTierStore(driver);
    this.landedTips = new SqlLandedTipStore(driver, codec);
    this.nonces = new SqlManagedNonceStore(driver);
    this.warnings = warnings;
  }

  /** Whether it is in a file, which may be moved. */
  get isOnFile(): boolean {
    return this.#isOnFile;
  }

  /** Rejects with ShredwayError "store_failed" when the database does not answer. */
  async ping(): Promise<void> {
    await this.#driver.query("SELECT 1", []);
  }

  numbers(): StoreNumbers {
    return this.#options.counts.numbers();
  }

  /**
   * Moves everything from the file to an empty PostgreSQL while the stores go on; at the end changes wait
   * for a moment. Throws ShredwayError "store_failed" when that was taken back: then all is as before.
   */
  async move(postgres: string): Promise<MoveSummary> {
    const { directory, clock, log } = this.#options;
    if (!this.#isOnFile || this.#move || this.#ending.signal.aborted) {
      throw new ShredwayError("store_failed", "the store: expected one in a file, got another");
    }
    const moving = moveToPostgres({
      movable: this.#driver,
      source: this.#base,
      directory,
      openTarget: async () => {
        await checkUnused(postgres, clock);
        return openPostgres(postgres, { ...this.#options, mustExist: false });
      },
      clock,
      log,
      signal: this.#ending.signal,
    });
    const ended = moving.then(
      ({ rest }) => rest,
      () => {},
    );
    this.#move = ended;
    try {
      const summary = await moving;
      this.#isOnFile = false;
      return summary;
    } finally {
      if (this.#isOnFile) this.#move = undefined;
    }
  }

  /** Settles when everything that was asked for is kept and the database is closed. Idempotent. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#move;
    await this.#driver.close();
    // What it held is free; it asks for nothing any more.
    await this.#nodeLock?.close();
  }
}
