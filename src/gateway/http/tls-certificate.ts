// The certificate of the TLS listeners: read from two files, checked, and followed.
//
// Opened by the composition and passed to HttpServer. It checks the files for changes every two
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
  /** Component of its log lines. Default: "http". */
  readonly component?: string;
}

export class TlsCertificate {
  readonly #files: TlsFiles;
  readonly #log: Logger | undefined;
  readonly #component: string;
  readonly #timer: Timer;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  #material: TlsMaterial;
  #fingerprint: string;

  /** Throws like readTlsMaterial. */
  constructor(files: TlsFiles, { clock, log, component = "http" }: CertificateDependencies) {
    this.#files = files;
    this.#log = log;
    this.#component = component;
    this.#fingerprint = this.#presentFingerprint();
    this.#material = readTlsMaterial(files);
    this.#timer = clock.every(checkMs, () => this.#check());
  }

  /** The last valid certificate. */
  get material(): TlsMaterial {
    return this.#material;
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
      const expires = new Date(material.expiresMs).toISOString();
      this.#log?.info({ expires }, `${this.#component}: a new TLS certificate is in force`);
    } catch (error) {
      this.#log?.error(
        `${this.#component}: the new TLS certificate cannot be used; the previous one stays in force: ${messageOf(error)}`,
      );
    }
  }

  #presentFingerprint(): string {
    return [this.#files.certificate, this.#files.key].map(fileFingerprint).join(";");
  }
}
