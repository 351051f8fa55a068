// The identity that leaders see: of a file that may change, or of the moment.
//
// Owned by a route. Looks every two seconds whether the file is another one; a file that cannot be read
// then is told once, and the last good identity stays. The key itself leaves this part only as the
// credentials of TLS.

import { statSync } from "node:fs";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { credentialsOf, newCredentials } from "./certificate.ts";
import type { QuicheCredentials } from "./quiche.ts";

interface IdentityDependencies {
  /** Undefined: a key pair of the moment. */
  readonly path: string | undefined;
  /** The seed, 32 bytes, which is cleared here; solana/key-file.ts is the real one. May throw. */
  readonly readSeed: (path: string) => Uint8Array;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  readonly changed: (credentials: QuicheCredentials) => void;
}

const lookMs = 2000;

export class TpuIdentity {
  readonly #dependencies: IdentityDependencies;
  #credentials: QuicheCredentials;
  #mark = "";
  #timer: Timer | undefined;

  /** Throws what `readSeed` throws. */
  constructor(dependencies: IdentityDependencies) {
    this.#dependencies = dependencies;
    const { path, clock } = dependencies;
    if (path === undefined) {
      this.#credentials = newCredentials();
      return;
    }
    this.#mark = this.#markOf(path);
    this.#credentials = this.#read(path);
    this.#timer = clock.every(lookMs, () => this.#look(path));
  }

  get credentials(): QuicheCredentials {
    return this.#credentials;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #look(path: string): void {
    const mark = this.#markOf(path);
    if (mark === this.#mark) return;
    this.#mark = mark;
    const { log, changed } = this.#dependencies;
    try {
      const credentials = this.#read(path);
      // The same key gives the same certificate, but for nothing: Ed25519 signs without chance.
      if (credentials.certificatePem === this.#credentials.certificatePem) return;
      this.#credentials = credentials;
      log?.info({ path }, "another identity is in force");
      changed(credentials);
    } catch (error) {
      log?.warn(`the identity stays as it was: ${messageOf(error)}`);
    }
  }

  #read(path: string): QuicheCredentials {
    const seed = this.#dependencies.readSeed(path);
    try {
      return credentialsOf(seed);
    } finally {
      seed.fill(0);
    }
  }

  /** Changes when the file is written or replaced; empty while there is none. */
  #markOf(path: string): string {
    try {
      const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
      return [ino, size, mtimeNs, ctimeNs].join();
    } catch {
      return "";
    }
  }
}
