// The certificate of the TLS listeners: read from two files, checked, and followed.
//
// Opened by the composition for HTTP, QUIC and the ShredStream service. It checks the files for changes every two
// seconds, so a renewal by an ACME client needs no restart. Files that are unusable or do not belong
// together are logged once, and the last valid certificate stays in use.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { fileFingerprint } from "../../core/files.ts";
import type { Logger } from "../../core/log.ts";
import { readTlsMaterial, type TlsFiles, type TlsMaterial } from "../../core/tls-material.ts";

const checkMs = 2000;

interface CertificateDependencies {
  readonly clock: Pick<Clock, "every">;
  readonly log?: Logger | undefined;
  /** The section of the configuration, for log lines. Default: http. */
  readonly section?: string;
}

export class TlsCertificate {
  readonly #files: TlsFiles;
  readonly #log: Logger | undefined;
  readonly #section: string;
  readonly #timer: Timer;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  #material: TlsMaterial;
  #fingerprint: string;
  #problem: string | null = null;

  /** Throws like readTlsMaterial. */
  constructor(files: TlsFiles, { clock, log, section = "http" }: CertificateDependencies) {
    this.#files = files;
    this.#section = section;
    this.#log = log;
    this.#fingerprint = this.#presentFingerprint();
    this.#material = readTlsMaterial(files);
    this.#timer = clock.every(checkMs, () => this.#check());
  }

  /** The last valid certificate. */
  get material(): TlsMaterial {
    return this.#material;
  }

  /** Why the present files are not used; null: they are. */
  get problem(): string | null {
    return this.#problem;
  }

  /** `listener` may throw: the old certificate then stays in use. Returns a function that ends it. */
  onChange(listener: (material: TlsMaterial) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#timer.cancel();
    this.#listeners.clear();
  }

  #check(): void {
    const fingerprint = this.#presentFingerprint();
    if (fingerprint === this.#fingerprint) return;
    this.#fingerprint = fingerprint;
    try {
      const material = readTlsMaterial(this.#files);
      for (const listener of this.#listeners) listener(material);
      this.#material = material;
      this.#problem = null;
      const expires = new Date(material.expiresMs).toISOString();
      this.#log?.info({ expires }, `${this.#section}: a new TLS certificate is in force`);
    } catch (error) {
      this.#problem = `${this.#section}: the new TLS certificate cannot be used; the previous one stays in force: ${messageOf(error)}`;
      this.#log?.error(this.#problem);
    }
  }

  #presentFingerprint(): string {
    return [this.#files.certificate, this.#files.key].map(fileFingerprint).join(";");
  }
}
