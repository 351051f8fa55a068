// A gateway on its own port: real HTTP, with test doubles for its dependencies.

import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import { parseAddressRange } from "../../../src/core/addresses/addresses.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { CallParams } from "../../../src/core/json-rpc/json-text.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import type { ApiKey, Scope } from "../../../src/gateway/accounts/types.ts";
import { Gateway } from "../../../src/gateway/endpoints/gateway.ts";
import { readMethodNames } from "../../../src/gateway/endpoints/read-methods.ts";
import { HttpServer } from "../../../src/gateway/http/server.ts";
import type { EngineName } from "../../../src/gateway/http/types.ts";
import type {
  GatewayDependencies,
  GatewaySettings,
  LimitVerdict,
  TransactionInspector,
} from "../../../src/gateway/methods/dependencies.ts";
import { NodeBundleCommitments } from "../../../src/gateway/submission/bundle-commitments.ts";
import type {
  BundleStatus,
  SubmitRequest,
  TimelineEvent,
  TransactionStatus,
} from "../../../src/gateway/submission/types.ts";
import type { Tracker } from "../../../src/gateway/tracker/types.ts";
import { verifySignatures } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { ManualClock } from "../clocks/manual-clock.ts";
import { closing } from "../closing.ts";
import { addressOf, wallet } from "../transactions/chain.ts";
import { checkAnswers } from "./described-answers.ts";
import { TestPublicKeys } from "./public-keys.ts";
import { signerOf } from "./signing-keys.ts";

export const tipWallet = wallet(100);
export const tipAddress = addressOf(tipWallet);
export const otherTipAddress = addressOf(wallet(101));
const frontPrefix = addressOf(wallet(102)).slice(0, 8);
export const frontWallet = wallet(102);

/** Tips and don't-front markers by the sandbox's parser; fees are not checked. */
export function inspectorFor(
  tipAddresses: readonly string[],
  prefix = frontPrefix,
): TransactionInspector {
  const tips = new Set(tipAddresses);
  return {
    inspect: (wire): TransactionFacts => {
      const { signatures, keys, instructions, version, blockhash } = parseTransaction(wire);
      const addresses = keys.map((each) => base58.encode(each));
      const tipLamports = instructions
        .filter(({ program, accounts, data }) => {
          const isTransfer = addresses[program] === "1".repeat(32) && data[0] === 2;
          return isTransfer && tips.has(addresses[accounts[1] ?? -1] ?? "");
        })
        .reduce((sum, { data }) => sum + Buffer.from(data).readBigUInt64LE(4), 0n);
      const [signatureBytes = new Uint8Array(64)] = signatures;
      return {
        wire,
        version,
        signatureBytes,
        signature: base58.encode(signatureBytes),
        feePayer: keys[0] ?? new Uint8Array(32),
        lifetime: blockhash,
        nonce: null,
        tipLamports,
        computeUnitLimit: 200_000,
        computeUnitPrice: 0n,
        priorityFeeLamports: 0n,
        hasFrontKey: addresses.some((each) => each.startsWith(prefix)),
      };
    },
  };
}

export function decodeBase58(text: string): Uint8Array | undefined {
  try {
    return base58.decode(text);
  } catch {
    return undefined;
  }
}

export function apiKey(text: string, fields: Partial<ApiKey> = {}): ApiKey {
  return {
    id: `k_${text}`,
    accountId: "a_1",
    accountName: "one",
    hash: createHash("sha256").update(text).digest(),
    hint: text.slice(0, 4),
    label: "",
    scopes: ["submit", "batch", "read", "shreds"],
    requestsPerSecond: null,
    burst: null,
    allowedRanges: [],
    createdNs: 0n,
    expiresNs: null,
    revokedNs: null,
    ...fields,
  };
}

export function scoped(text: string, ...scopes: Scope[]): [string, ApiKey] {
  return [text, apiKey(text, { scopes })];
}

const plenty: LimitVerdict = {
  allowed: true,
  limit: 50,
  remaining: 99,
  retryAfterSeconds: 0,
  resetSeconds: 1,
};

/** No leader is an alternative partner. */
export const noPartners: Tracker = {
  members: () => [],
  memberSet: () => new Set(),
  next: () => null,
};

/** Calls that the gateway forwarded, and the responses to return. */
export class GatewayRun {
  readonly clock = new ManualClock();
  readonly keys = new Map<string, ApiKey>([
    ["good", apiKey("good")],
    scoped("submitter", "submit"),
    scoped("batcher", "batch"),
    scoped("reader", "read"),
  ]);
  readonly publicKeys = new TestPublicKeys(this.clock, () => this.keys.values());
  readonly signer = signerOf(1);
  readonly submitted: SubmitRequest[] = [];
  readonly simulated: { wire: Uint8Array; options: unknown }[] = [];
  readonly read: { method: string; params: CallParams }[] = [];
  readonly statuses = new Map<string, TransactionStatus>();
  readonly bundles = new Map<string, BundleStatus>();
  readonly listeners = new Map<string, Set<(signature: string, event: TimelineEvent) => void>>();
  countedKeys: ApiKey[] = [];
  verdict: () => LimitVerdict = () => plenty;
  submit: (request: SubmitRequest) => Promise<void> = () => Promise.resolve();
  simulation: () => Promise<{ err: unknown } & Record<string, unknown>> = () =>
    Promise.resolve({ err: null });
  slot: bigint | null = null;
  verifierIsFull = false;
  hasPreflight = true;
  #opened: { gateway: Gateway; server: HttpServer } | undefined;

  static async open(
    settings: Partial<GatewaySettings> = {},
    parts: Partial<GatewayDependencies> = {},
    engine: EngineName = "node",
  ): Promise<GatewayRun> {
    const run = new GatewayRun();
    const gateway = new Gateway({ ...run.parts(), ...parts }, { ...settingsOf(), ...settings });
    const server = await HttpServer.open({
      ...gateway.serverOptions(),
      listen: ["127.0.0.1:0"],
      engine,
    });
    run.#opened = { gateway, server: closing(server) };
    return run;
  }

  get gateway(): Gateway {
    if (!this.#opened) throw new Error("expected an open gateway, got none");
    return this.#opened.gateway;
  }

  get server(): HttpServer {
    if (!this.#opened) throw new Error("expected an open gateway, got none");
    return this.#opened.server;
  }

  url(path = "/relay?api-key=good"): string {
    return `http://${this.server.addresses[0]}${path}`;
  }

  parts(): GatewayDependencies {
    const inspector = inspectorFor([tipAddress, otherTipAddress]);
    const preflight: NonNullable<GatewayDependencies["preflight"]> = {
      simulate: (wire, options) => {
        this.simulated.push({ wire, options });
        return this.hasPreflight ? this.simulation() : Promise.resolve({ err: null });
      },
    };
    return {
      clock: this.clock,
      keys: {
        find: (text) => this.keys.get(text) ?? null,
        get: (id) => [...this.keys.values()].find((key) => key.id === id) ?? null,
        allows: (key, address) => key.allowedRanges.includes(Buffer.from(address).toString("hex")),
      },
      publicKeys: this.publicKeys.publicKeys,
      limits: {
        take: (key) => {
          this.countedKeys.push(key);
          return this.verdict();
        },
      },
      inspector,
      verifier: {
        verify: (wire) => (this.verifierIsFull ? null : Promise.resolve(holds(wire))),
      },
      base58: { decode: decodeBase58, encode: (bytes) => base58.encode(bytes) },
      submissions: {
        submit: (request) => {
          this.submitted.push(request);
          return this.submit(request);
        },
        submitPair: async (first, second) => {
          this.submitted.push(first, second);
          await this.submit(first);
        },
        statuses: (accountId, signatures) =>
          Promise.resolve(
            signatures.map((each) => this.statuses.get(`${accountId} ${each}`) ?? null),
          ),
        bundles: (accountId, ids) =>
          Promise.resolve(ids.map((each) => this.bundles.get(`${accountId} ${each}`) ?? null)),
        subscribe: (accountId, listener) => {
          const listeners = this.listeners.get(accountId) ?? new Set();
          this.listeners.set(accountId, listeners.add(listener));
          return () => void listeners.delete(listener);
        },
      },
      signer: this.signer,
      bundleCommitments: new NodeBundleCommitments({ clock: this.clock, reader: null }),
      preflight,
      reads: {
        has: (method) => method === "getSlot" || method === "getFault",
        call: (method, params) => {
          this.read.push({ method, params });
          if (method === "getFault") return Promise.reject(new TypeError("secret"));
          return Promise.resolve(7n);
        },
      },
      sockets: null,
      shreds: null,
      tipFloor: null,
      tipHistory: null,
      nonces: null,
      tracker: noPartners,
      pages: [],
      slot: () => this.slot,
    };
  }

  notify(accountId: string, signature: string, event: TimelineEvent): void {
    for (const listener of this.listeners.get(accountId) ?? []) listener(signature, event);
  }

  /** Body and status of one call. */
  async call(method: string, params: readonly unknown[] = [], path?: string): Promise<Answer> {
    return this.post(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }), path);
  }

  async post(
    body: string | Uint8Array,
    path?: string,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await fetch(this.url(path), {
      method: "POST",
      body: typeof body === "string" ? body : Uint8Array.from(body),
      headers,
    });
    const text = await response.text();
    const parsed: unknown = text === "" ? null : JSON.parse(text);
    if (!/^\/(relayb|relay2|shred-pay)/.test(path ?? "")) checkAnswers(body, parsed);
    return { status: response.status, headers: response.headers, body: parsed, text };
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
  readonly text: string;
}

function settingsOf(): GatewaySettings {
  return {
    regions: [
      {
        name: "here",
        url: "http://here.example",
        tipAddresses: [tipAddress, otherTipAddress],
        shredTipAddresses: [],
      },
      {
        name: "there",
        url: null,
        tipAddresses: [otherTipAddress],
        shredTipAddresses: [tipAddress],
      },
    ],
    withholdsShredTips: false,
    minimumTipLamports: 10_000n,
    minimumTipLamportsByMethod: {},
    partnerUnitLamports: 10n,
    trustedProxies: [],
    readMethods: new Set(readMethodNames),
  };
}

export const loopback = [parseAddressRange("127.0.0.0/8")];

function holds(wire: Uint8Array): boolean {
  try {
    verifySignatures(parseTransaction(wire));
    return true;
  } catch (thrown) {
    if (thrown instanceof ShredwayError && thrown.reason === "signature_invalid") return false;
    throw thrown;
  }
}
