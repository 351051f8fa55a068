// The certificate of the TLS listeners: read from two files, checked, and followed.
//
// Opened by the composition for HTTP, QUIC and the ShredStream service. It checks the files for changes every two
// seconds, so a renewal by an ACME client needs no restart. Files that are unusable or do not belong
// together are logged once, and the last valid certificate stays in use. An expired one is logged once, too.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { fileFingerprint } from "../../core/files.ts";
import type { Logger } from "../../core/log.ts";
import { readTlsMaterial, type TlsFiles, type TlsMaterial } from "../../core/tls-material.ts";

const checkMs = 2000;

interface CertificateDependencies {
  readonly clock: Pick<Clock, "every" | "nowNs">;
  readonly log?: Logger | undefined;
  /** The section of the configuration, for log lines. Default: http. */
  readonly section?: string;
}

export class TlsCertificate {
  readonly #files: TlsFiles;
  readonly #clock: Pick<Clock, "nowNs">;
  readonly #log: Logger | undefined;
  readonly #section: string;
  readonly #timer: Timer;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  #material: TlsMaterial;
  #fingerprint: string;
  #problem: string | null = null;
  #hasLoggedExpiry = false;

  /** Throws like readTlsMaterial. */
  constructor(files: TlsFiles, { clock, log, section = "http" }: CertificateDependencies) {
    this.#files = files;
    this.#section = section;
    this.#clock = clock;
    this.#log = log;
    this.#fingerprint = this.#presentFingerprint();
    this.#material = readTlsMaterial(files);
    this.#logExpiry();
    this.#timer = clock.every(checkMs, () => this.#check());
  }

  /** The last valid certificate. */
  get material(): TlsMaterial {
    return this.#material;
  }

  /** Why the present files are not used, and whether the certificate in use has expired; null: neither. */
  get problem(): string | null {
    const problems = [this.#problem, this.#expiry()].filter((one) => one !== null);
    return problems.length > 0 ? problems.join("; ") : null;
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

  #expiry(): string | null {
    const { expiresMs, files } = this.#material;
    if (expiresMs > Number(this.#clock.nowNs() / 1_000_000n)) return null;
    const expired = `the TLS certificate ${files.certificate} expired at ${new Date(expiresMs).toISOString()}`;
    return `${this.#section}: ${expired}, so clients refuse the connection; renew it and replace both files`;
  }

  #logExpiry(): void {
    const expiry = this.#expiry();
    if (expiry !== null && !this.#hasLoggedExpiry) this.#log?.error(expiry);
    this.#hasLoggedExpiry = expiry !== null;
  }

  #check(): void {
    this.#follow();
    this.#logExpiry();
  }

  #follow(): void {
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
