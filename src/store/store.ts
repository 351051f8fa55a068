// The store: what must be there again after the process ended, however it ended.
//
// Opened by main and by the commands that change keys; several processes may have the same folder
// open. Puts together the folder, the database's driver, the schema and what is kept in it.

import type { DestinationStore } from "../accounts/destination-types.ts";
import type { KeyStore } from "../accounts/types.ts";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import { decodeBase58, encodeBase58 } from "../data-plane/base58.ts";
import type { ManagedNonceStore } from "../nonces/types.ts";
import type { SubmissionStore } from "../submission/types.ts";
import type { TierStore } from "../tiers/types.ts";
import type { RegistrationStore } from "../tips/registration-types.ts";
import type { LandedTipStore } from "../tips/tip-types.ts";
import { prepareDataFolder } from "./data-folder.ts";
import { SqlDestinationStore } from "./destination-store.ts";
import type { SqlDriver } from "./driver.ts";
import { SqlKeyStore } from "./key-store.ts";
import { SqlLandedTipStore } from "./landed-tip-store.ts";
import { migrate } from "./migrations.ts";
import { SqlManagedNonceStore } from "./nonce-store.ts";
import { SqlRegistrationStore } from "./registration-store.ts";
import type { SignatureCodec } from "./signature-codec.ts";
import { SqliteDriver } from "./sqlite-driver.ts";
import { SqlSubmissionStore } from "./submission-store.ts";
import { SqlTierStore } from "./tier-store.ts";

export interface StoreOptions {
  /** Made when it is missing. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Refuses a folder without a database instead of making one. */
  readonly mustExist?: boolean;
  /** Refuses a folder that another service uses: two would send, and end, the same submissions. */
  readonly isService?: boolean;
}

const codec: SignatureCodec = { decode: decodeBase58, encode: encodeBase58 };

export class Store {
  readonly keys: KeyStore;
  readonly submissions: SubmissionStore;
  readonly destinations: DestinationStore;
  readonly registrations: RegistrationStore;
  readonly tiers: TierStore;
  readonly landedTips: LandedTipStore;
  readonly nonces: ManagedNonceStore;

  /** What an operator should mend. */
  readonly warnings: readonly string[];
  readonly #driver: SqlDriver;

  /** Throws ShredwayError "store_failed", or "store_newer" for a newer version's database. */
  static async open(options: StoreOptions): Promise<Store> {
    const folder = prepareDataFolder(options.directory, options.mustExist);
    const { clock, log } = options;
    const { databasePath: path, lockPath } = folder;
    const driver = await SqliteDriver.open({
      path,
      clock,
      log,
      ...(options.isService && { lockPath }),
    });
    try {
      await migrate(driver, "blob");
    } catch (error) {
      await driver.close();
      throw error;
    }
    return new Store(driver, folder.warnings);
  }

  private constructor(driver: SqlDriver, warnings: readonly string[]) {
    this.#driver = driver;
    this.keys = new SqlKeyStore(driver);
    this.submissions = new SqlSubmissionStore(driver);
    this.destinations = new SqlDestinationStore(driver);
    this.registrations = new SqlRegistrationStore(driver, codec);
    this.tiers = new SqlTierStore(driver);
    this.landedTips = new SqlLandedTipStore(driver, codec);
    this.nonces = new SqlManagedNonceStore(driver);
    this.warnings = warnings;
  }

  /** Settles when everything that was asked for is kept and the files are closed. Idempotent. */
  close(): Promise<void> {
    return this.#driver.close();
  }
}
