// Test stage for managed nonces: the sandbox chain with manual time, and a node and a store that
// can fail, lie and outlive processes.

import { base58 } from "@scure/base";
import {
  PublicKey,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { ShredwayError } from "../../../src/core/errors.ts";
import { KeyPair } from "../../../src/core/key-pair.ts";
import { parsePubkey, pubkeyBytes } from "../../../src/core/primitives.ts";
import type { BlockhashState } from "../../../src/core/transactions/lifetimes.ts";
import type { CoSigningCheck } from "../../../src/gateway/nonces/co-signing.ts";
import { findNonceAccount, type NonceAccount } from "../../../src/gateway/nonces/nonce-account.ts";
import {
  NonceService,
  type NonceServiceLimits,
  nonceServiceLimitsFor,
} from "../../../src/gateway/nonces/nonce-service.ts";
import type {
  ManagedNonce,
  ManagedNonceStore,
  NonceAccountView,
  NonceInfo,
  NonceKeys,
  NonceNode,
  NonceOwner,
} from "../../../src/gateway/nonces/types.ts";
import { nonceKeysOf } from "../../../src/platform/solana/key-file.ts";
import { sha256 } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import {
  addressOf,
  bob,
  ChainRun,
  sol,
  transferOf,
  wallet,
} from "../../support/transactions/chain.ts";

/** The client whose transactions are co-signed. */
export const client = wallet(60);
export const funding = new KeyPair(new Uint8Array(32).fill(0xf0));
export const encode = (bytes: Uint8Array): string => base58.encode(bytes);
export const bytesOf = (address: string): Uint8Array => pubkeyBytes(parsePubkey(address));
export const signaturesLamports = 10_000n;

export function ownerOf(name: string): NonceOwner {
  return { keyId: `k_${name}`, accountId: `a_${name}` };
}

/** Keys of a secret that depends on the name. */
export function keysOf(name: string, payer = funding): NonceKeys {
  return nonceKeysOf(payer, sha256(`nonce test ${name}`));
}

/**
 * Finds the signature's place with the sandbox's parser; sufficient for well-formed transactions.
 */
export const realCheck: CoSigningCheck = {
  place: (wire, _account, authority) => {
    const { keys, signatures, message, blockhash } = parseTransaction(wire);
    const index = keys.findIndex((key) => Buffer.compare(key, authority) === 0);
    const signature = signatures[index];
    if (!signature || signature.some((byte) => byte !== 0)) {
      throw new ShredwayError("co_signing_refused", "expected the authority's place, got none");
    }
    const messageBegin = message.byteOffset - wire.byteOffset;
    return {
      signatureAt: signature.byteOffset - wire.byteOffset,
      messageBegin,
      messageEnd: messageBegin + message.length,
      lifetime: Uint8Array.from(blockhash),
    };
  },
};

/** Calls of a process; after it was killed, they never return. */
export class Steps {
  /** Names of all calls. */
  readonly log: string[] = [];
  isDead = false;
  /** Kills the process at the call with this number, before or after its effect. */
  kill: { readonly at: number; readonly when: "before" | "after" } | null = null;

  async step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    const here = this.kill?.at === this.log.length ? this.kill.when : null;
    this.log.push(name);
    if (here === "before") this.isDead = true;
    if (!this.isDead) {
      const result = await work();
      if (here === "after") this.isDead = true;
      if (!this.isDead) return result;
    }
    return new Promise<never>(() => undefined);
  }
}

/** The disk, and the listeners to its changes. */
export class Disk {
  readonly rows: ManagedNonce[] = [];
  readonly listeners = new Map<object, () => void>();

  add(nonce: ManagedNonce): boolean {
    const { index, keyId, address } = nonce;
    const isReserved = this.rows.some(
      (row) => row.index === index || row.keyId === keyId || row.address === address,
    );
    if (!isReserved) this.rows.push(nonce);
    return !isReserved;
  }

  setReady(index: number): void {
    const at = this.rows.findIndex((row) => row.index === index);
    const row = this.rows[at];
    if (!row) throw new ShredwayError("store_failed", `expected nonce ${index}, got none`);
    this.rows[at] = { ...row, state: "ready" };
  }

  tell(changer: object): void {
    for (const [store, listener] of this.listeners) if (store !== changer) listener();
  }
}

export class DiskStore implements ManagedNonceStore {
  readonly #disk: Disk;
  readonly #steps: Steps;
  /** All calls fail. */
  isDown = false;

  constructor(disk: Disk, steps: Steps) {
    this.#disk = disk;
    this.#steps = steps;
  }

  all(): Promise<ManagedNonce[]> {
    return this.#step("all", () => [...this.#disk.rows]);
  }

  find(keyId: string): Promise<ManagedNonce | null> {
    return this.#step("find", () => this.#disk.rows.find((row) => row.keyId === keyId) ?? null);
  }

  add(nonce: ManagedNonce): Promise<boolean> {
    return this.#step("add", () => {
      const isAdded = this.#disk.add(nonce);
      this.#disk.tell(this);
      return isAdded;
    });
  }

  setReady(index: number): Promise<void> {
    return this.#step("setReady", () => {
      this.#disk.setReady(index);
      this.#disk.tell(this);
    });
  }

  onForeignChange(listener: () => void): () => void {
    this.#disk.listeners.set(this, listener);
    return () => void this.#disk.listeners.delete(this);
  }

  #step<T>(name: string, work: () => T): Promise<T> {
    return this.#steps.step(name, () => {
      if (this.isDown) throw new ShredwayError("store_failed", "the disk is away");
      return work();
    });
  }
}

type NodeStatus = NonNullable<Awaited<ReturnType<NonceNode["signatureStatuses"]>>[number]>;

/** The chain through a node; tests can override responses. */
export class ChainNode implements NonceNode {
  readonly #run: ChainRun;
  readonly #steps: Steps;
  /** Signatures of sent transactions, each once. */
  readonly sent = new Set<string>();
  /** Calls with these names fail. */
  readonly down = new Set<string>();
  /** Sent transactions are lost before any leader. */
  losesAll = false;
  /** Returns the truth or an override. */
  accountsOverride: (actual: NonceAccountView | null, address: string) => NonceAccountView | null =
    (actual) => actual;
  minimumOverride: (actual: bigint) => bigint = (actual) => actual;
  statusOverride: (actual: NodeStatus | null) => NodeStatus | null = (actual) => actual;

  constructor(run: ChainRun, steps: Steps) {
    this.#run = run;
    this.#steps = steps;
  }

  accounts(addresses: readonly string[]): Promise<(NonceAccountView | null)[]> {
    return this.#step("accounts", () =>
      addresses.map((each) =>
        this.accountsOverride(this.#run.chain.account(each, "confirmed"), each),
      ),
    );
  }

  minimumBalance(bytes: number): Promise<bigint> {
    return this.#step("minimumBalance", () =>
      this.minimumOverride(this.#run.chain.minimumBalanceForRentExemption(bytes)),
    );
  }

  latestBlockhash(): Promise<string> {
    return this.#step(
      "latestBlockhash",
      () => this.#run.chain.latestBlockhash("confirmed").blockhash,
    );
  }

  blockhashState(blockhash: string): Promise<BlockhashState> {
    const { chain } = this.#run;
    return this.#step("blockhashState", () => ({
      isValid: chain.isBlockhashValid(blockhash),
      slot: chain.slot("confirmed"),
    }));
  }

  sendTransaction(wire: Uint8Array): Promise<string> {
    return this.#step("sendTransaction", () => {
      const signature = encode(parseTransaction(wire).signatures[0] ?? new Uint8Array(64));
      this.sent.add(signature);
      return this.losesAll ? signature : this.#run.chain.send(wire);
    });
  }

  signatureStatuses(signatures: readonly string[]) {
    return this.#step("signatureStatuses", () =>
      signatures.map((each) => {
        const status = this.#run.chain.status(each);
        const actual = status && { err: status.err, commitment: status.confirmationStatus };
        return this.statusOverride(actual);
      }),
    );
  }

  #step<T>(name: string, work: () => T): Promise<T> {
    return this.#steps.step(name, () => {
      if (this.down.has(name)) throw new ShredwayError("rpc_failed", `${name}: the node is away`);
      return work();
    });
  }
}

/** A process of the service. */
export interface Process {
  readonly service: NonceService;
  readonly node: ChainNode;
  readonly store: DiskStore;
  readonly steps: Steps;
}

export class NonceHarness {
  readonly clock = new ManualClock();
  readonly run: ChainRun;
  readonly limits: NonceServiceLimits;
  /** Warnings of the log, oldest first. */
  readonly warnings: string[] = [];

  private constructor(run: ChainRun, limits: NonceServiceLimits) {
    this.run = run;
    this.limits = limits;
  }

  static async open(limits: Partial<NonceServiceLimits> = {}): Promise<NonceHarness> {
    const run = await ChainRun.open({
      intervalsPerSlot: 1,
      funded: new Map([
        [funding.address, 1000n * sol],
        [addressOf(client), sol],
      ]),
    });
    const harness = new NonceHarness(run, { ...nonceServiceLimitsFor(400), ...limits });
    await harness.pass(1200);
    return harness;
  }

  /** Starts a process. */
  async start(disk: Disk, keys: NonceKeys | null, steps = new Steps()): Promise<Process> {
    const node = new ChainNode(this.run, steps);
    const store = new DiskStore(disk, steps);
    const service = await NonceService.open(
      {
        clock: this.clock,
        log: {
          info: () => {},
          warn: (...given: readonly unknown[]) => void this.warnings.push(String(given.at(-1))),
        },
        node,
        store,
        keys,
        check: realCheck,
        encode,
      },
      this.limits,
    );
    // The jobs of a killed process never end.
    closing({ close: () => (steps.isDead ? undefined : service.close()) });
    return { service, node, store, steps };
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      this.run.pass(100_000_000n);
      await this.clock.advance(100);
      await turnOver();
    }
  }

  /** Advances time until `work` has settled. */
  async until<T>(work: Promise<T>, msMax = 600_000): Promise<T> {
    const state = { isSettled: false };
    const settled = (): void => {
      state.isSettled = true;
    };
    work.then(settled, settled);
    await turnOver();
    for (let ms = 0; !state.isSettled && ms < msMax; ms += 100) await this.pass(100);
    if (!state.isSettled) throw new Error(`expected an end within ${msMax} ms`);
    return work;
  }

  /** Calls like a client that retries as long as requested. */
  async managed(service: NonceService, owner: NonceOwner): Promise<NonceInfo> {
    for (let tries = 0; tries < 100; tries++) {
      try {
        return await this.until(service.managed(owner));
      } catch (error) {
        if (!(error instanceof ShredwayError) || error.reason !== "nonce_pending") throw error;
      }
    }
    throw new Error("expected an account after 100 calls");
  }

  /** The account on the chain; null: it does not exist. */
  nonce(address: string): NonceAccount | null {
    return findNonceAccount(this.run.chain.account(address, "processed"));
  }

  lamports(address: string): bigint {
    return this.run.chain.account(address, "processed")?.lamports ?? 0n;
  }

  get rent(): bigint {
    return this.run.chain.minimumBalanceForRentExemption(80);
  }
}

function advanceOf({ nonceAccount, nonceAuthority }: NonceInfo): TransactionInstruction {
  return SystemProgram.nonceAdvance({
    noncePubkey: new PublicKey(nonceAccount),
    authorizedPubkey: new PublicKey(nonceAuthority),
  });
}

/** Pays bob with this nonce value; the authority's signature is missing. */
export function unsignedTransfer(
  info: NonceInfo,
  { lamports = 1_000_000n, nonce = info.nonce, payer = client } = {},
): Uint8Array {
  const transaction = new Transaction({
    feePayer: payer.publicKey,
    nonceInfo: { nonce, nonceInstruction: advanceOf(info) },
    minContextSlot: 0, // only for clients that wait
  });
  transaction.add(transferOf(payer, bob, lamports));
  transaction.partialSign(payer);
  return Uint8Array.from(transaction.serialize({ requireAllSignatures: false }));
}

/** Lets all pending microtasks and immediates run. */
export function turnOver(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
