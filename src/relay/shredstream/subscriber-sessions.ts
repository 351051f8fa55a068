// Authentication of subscribers at this relay's own block engine: challenges and tokens.
//
// Used by subscriber-service.ts. A challenge contains its own end and a code that only this process can
// compute, so requests for challenges use no memory. It counts once. Tokens are in memory: a restart ends
// them, and those of a removed subscriber end with it.

import { createHash, createHmac, timingSafeEqual, verify } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import { publicKeyOf } from "../../core/key-pair.ts";
import { pubkeyBytesLength, pubkeyOf } from "../../core/primitives.ts";
import {
  type ChallengeRequest,
  challengeText,
  subscriberRole,
  type Token,
  type Tokens,
  type TokensRequest,
} from "./messages.ts";

interface SubscriberSessionsDependencies {
  readonly clock: Clock;
  /** Cryptographically random bytes. */
  readonly randomBytes: (count: number) => Buffer;
  /** Whether the public key (base58) is registered now. */
  readonly isRegistered: (address: string) => boolean;
}

const challengeMs = 60_000;
const accessMs = 30 * 60_000;
const refreshMs = 24 * 3_600_000;
/** Per public key and kind; the oldest one is forgotten first. */
const tokensMax = 16;
const signatureBytes = 64;

type TokenKind = "access" | "refresh";

interface Issued {
  readonly kind: TokenKind;
  readonly address: string;
  readonly expiresMs: number;
}

export class SubscriberSessions {
  readonly #dependencies: SubscriberSessionsDependencies;
  readonly #secret: Buffer;
  /** Used challenges with their ends; only the holder of a registered key can add one. */
  readonly #used = new Map<string, number>();
  /** Issued tokens by their hash. */
  readonly #tokens = new Map<string, Issued>();
  readonly #tokensOf = new Map<string, string[]>();

  constructor(dependencies: SubscriberSessionsDependencies) {
    this.#dependencies = dependencies;
    this.#secret = dependencies.randomBytes(32);
  }

  /** Throws GrpcError. */
  challenge({ role, publicKey }: ChallengeRequest): string {
    if (role !== subscriberRole) {
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `role: expected ${subscriberRole} (SHREDSTREAM_SUBSCRIBER), got ${role}`,
      );
    }
    const address = this.#registered(publicKey);
    const nonce = this.#dependencies.randomBytes(12).toString("hex");
    const content = `${(this.#nowMs() + challengeMs).toString(16)}.${nonce}`;
    return `${content}.${this.#codeOf(address, content).toString("hex")}`;
  }

  /** Throws GrpcError. A challenge ends with its first valid signature, or after a minute. */
  tokens({ challenge, publicKey, signature }: TokensRequest): Tokens {
    const address = this.#registered(publicKey);
    if (signature.length !== signatureBytes) {
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `signed_challenge: expected ${signatureBytes} bytes, got ${signature.length}`,
      );
    }
    const nowMs = this.#nowMs();
    for (const [text, endMs] of this.#used) if (endMs <= nowMs) this.#used.delete(text);
    const endMs = this.#endOf(address, challenge);
    if (endMs === null || endMs <= nowMs || this.#used.has(challenge)) {
      throw new GrpcError(
        "UNAUTHENTICATED",
        "unknown, used or expired challenge; expected BASE58(pubkey)-challenge of the last minute",
      );
    }
    if (!verify(null, Buffer.from(challenge), publicKeyOf(publicKey), signature)) {
      throw new GrpcError("UNAUTHENTICATED", "invalid signature of the challenge");
    }
    this.#used.set(challenge, endMs);
    return { access: this.#issue(address, "access"), refresh: this.#issue(address, "refresh") };
  }

  /** A new access token. Throws GrpcError. */
  refresh(refreshToken: string): Token {
    return this.#issue(this.#holderOf(refreshToken, "refresh"), "access");
  }

  /** The public key (base58) that the access token belongs to. Throws GrpcError. */
  subscriberOf(accessToken: string): string {
    return this.#holderOf(accessToken, "access");
  }

  /** Ends the sessions of keys that are not registered any more. */
  forgetRemoved(): void {
    const { isRegistered } = this.#dependencies;
    for (const [owner, hashes] of this.#tokensOf) {
      if (isRegistered(owner.split(" ")[0] ?? "")) continue;
      for (const hash of hashes) this.#tokens.delete(hash);
      this.#tokensOf.delete(owner);
    }
  }

  /** The end of a challenge of this process for this public key; null: it is not one. */
  #endOf(address: string, signedText: string): number | null {
    const prefix = challengeText(address, "");
    const parts = /^([0-9a-f]{1,12}\.[0-9a-f]{24})\.([0-9a-f]{64})$/.exec(
      signedText.startsWith(prefix) ? signedText.slice(prefix.length) : "",
    );
    const [, content = "", code = ""] = parts ?? [];
    if (!parts || !timingSafeEqual(Buffer.from(code, "hex"), this.#codeOf(address, content))) {
      return null;
    }
    return Number.parseInt(content, 16);
  }

  #codeOf(address: string, content: string): Buffer {
    return createHmac("sha256", this.#secret).update(`${address} ${content}`).digest();
  }

  #registered(publicKey: Uint8Array): string {
    if (publicKey.length !== pubkeyBytesLength) {
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `pubkey: expected ${pubkeyBytesLength} bytes, got ${publicKey.length}`,
      );
    }
    const address: string = pubkeyOf(publicKey);
    if (this.#dependencies.isRegistered(address)) return address;
    throw new GrpcError("PERMISSION_DENIED", `public key ${address} is not registered`);
  }

  #holderOf(token: string, kind: TokenKind): string {
    const issued = this.#tokens.get(hashOf(token));
    if (issued?.kind === kind && issued.expiresMs > this.#nowMs()) return issued.address;
    throw new GrpcError("UNAUTHENTICATED", `unknown or expired ${kind} token`);
  }

  #issue(address: string, kind: TokenKind): Token {
    const value = this.#dependencies.randomBytes(32).toString("base64url");
    const expiresMs = this.#nowMs() + (kind === "access" ? accessMs : refreshMs);
    const owner = `${address} ${kind}`;
    const hashes = this.#tokensOf.get(owner) ?? [];
    this.#tokensOf.set(owner, hashes);
    hashes.push(hashOf(value));
    this.#tokens.set(hashOf(value), { kind, address, expiresMs });
    for (const old of hashes.splice(0, Math.max(0, hashes.length - tokensMax))) {
      this.#tokens.delete(old);
    }
    return { value, expiresMs };
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.nowNs() / 1_000_000n);
  }
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
