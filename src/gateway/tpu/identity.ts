// The client identity for leaders: from a key file, or ephemeral.
//
// Owned by a route. It checks the file for changes every two seconds. An unreadable file is logged
// once, and the last valid identity stays in use. The key leaves this class only as TLS
// credentials.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { fileFingerprint } from "../../core/files.ts";
import type { Logger } from "../../core/log.ts";
import { credentialsOf, newCredentials } from "../../core/quic/certificate.ts";
import type { QuicheCredentials } from "../../core/quic/quiche.ts";

interface IdentityDependencies {
  /** Undefined: an ephemeral key pair. */
  readonly path: string | undefined;
  /**
   * Returns the 32-byte seed, which is cleared after use. Implemented by solana/key-file.ts. May
   * throw.
   */
  readonly readSeed: (path: string) => Uint8Array;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  readonly changed: (credentials: QuicheCredentials) => void;
}

const checkMs = 2000;

export class TpuIdentity {
  readonly #dependencies: IdentityDependencies;
  #credentials: QuicheCredentials;
  #fingerprint = "";
  #timer: Timer | undefined;

  /** Throws the error of `readSeed`. */
  constructor(dependencies: IdentityDependencies) {
    this.#dependencies = dependencies;
    const { path, clock } = dependencies;
    if (path === undefined) {
      this.#credentials = newCredentials();
      return;
    }
    this.#fingerprint = fileFingerprint(path);
    this.#credentials = this.#read(path);
    this.#timer = clock.every(checkMs, () => this.#check(path));
  }

  get credentials(): QuicheCredentials {
    return this.#credentials;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #check(path: string): void {
    const fingerprint = fileFingerprint(path);
    if (fingerprint === this.#fingerprint) return;
    this.#fingerprint = fingerprint;
    const { log, changed } = this.#dependencies;
    try {
      const credentials = this.#read(path);
      // The same key gives the same certificate.
      if (credentials.certificatePem === this.#credentials.certificatePem) return;
      this.#credentials = credentials;
      log?.info({ path }, "tpu: a new identity is in force");
      changed(credentials);
    } catch (error) {
      log?.warn(
        `tpu: the identity file could not be read; the previous identity stays in force: ${messageOf(error)}`,
      );
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
}
