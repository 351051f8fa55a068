// A gateway in front of the sandbox chain: the real HTTP server, gateway, upstream and chain, and a
// test route that submits directly to the chain. Only this file combines them.

import { randomBytes } from "node:crypto";
import { Connection, Keypair, LAMPORTS_PER_SOL } from "@solana/web3.js";
import { formatEndpoint, parseEndpoint } from "../../src/core/addresses/addresses.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { ApiKey, Scope } from "../../src/gateway/accounts/types.ts";
import { Gateway, type GatewayDependencies } from "../../src/gateway/endpoints/gateway.ts";
import { readMethodNames, readMethodsOf } from "../../src/gateway/endpoints/read-methods.ts";
import { HttpServer } from "../../src/gateway/http/server.ts";
import { preflightOf } from "../../src/gateway/methods/preflight.ts";
import { NodeBundleCommitments } from "../../src/gateway/submission/bundle-commitments.ts";
import { StatusReader } from "../../src/gateway/submission/status-reader.ts";
import { bundleIdOf } from "../../src/gateway/submission/tracked-transaction.ts";
import type {
  Submissions,
  SubmitRequest,
  TransactionStatus,
} from "../../src/gateway/submission/types.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { Upstream } from "../../src/platform/solana/upstream.ts";
import { encodeBase58 } from "../../src/relay/data-plane/base58.ts";
import { verifySignatures } from "../../src/sandbox/chain/keys.ts";
import type { ChainApi } from "../../src/sandbox/chain/types.ts";
import { parseTransaction } from "../../src/sandbox/chain/wire.ts";
import { decodeBase58 } from "../../src/sandbox/rpc/bytes.ts";
import { inspectorFor, noPartners } from "../support/gateway/gateway.ts";
import { TestPublicKeys } from "../support/gateway/public-keys.ts";
import { signerOf } from "../support/gateway/signing-keys.ts";
import { Cluster, type TestService } from "./cluster.ts";

export const tipAddress = encodeBase58(randomBytes(32));
export const minimumTipLamports = 10_000n;

async function verify(wire: Uint8Array): Promise<boolean> {
  try {
    verifySignatures(parseTransaction(wire));
    return true;
  } catch {
    return false;
  }
}

/** Submits to the chain immediately, and reads the status from the chain. */
class ChainSubmissions implements Submissions {
  readonly requests: SubmitRequest[] = [];
  readonly #chain: ChainApi;

  constructor(chain: ChainApi) {
    this.#chain = chain;
  }

  async submit(request: SubmitRequest): Promise<void> {
    this.requests.push(request);
    const wires = request.transactions.map(({ wire }) => wire);
    if (request.isBundle) this.#chain.sendBundle(wires);
    else for (const wire of wires) this.#chain.send(wire);
  }

  async submitPair(first: SubmitRequest, second: SubmitRequest): Promise<void> {
    await this.submit(first);
    await this.submit(second);
  }

  async statuses(_accountId: string, signatures: readonly string[]) {
    return signatures.map((signature) => this.#status(signature));
  }

  async bundles(_accountId: string, bundleIds: readonly string[]) {
    return bundleIds.map((bundleId) => {
      const request = this.requests.find(
        ({ isBundle, transactions }) =>
          isBundle && bundleIdOf(transactions.map(({ signature }) => signature)) === bundleId,
      );
      if (!request) return null;
      const statuses = request.transactions.map(({ signature }) => this.#status(signature));
      return { bundleId, transactions: statuses.filter((status) => status !== null) };
    });
  }

  subscribe(): () => void {
    return () => undefined;
  }

  #status(signature: string): TransactionStatus | null {
    const request = this.requests.find(({ transactions }) =>
      transactions.some((each) => each.signature === signature),
    );
    if (!request) return null;
    const found = this.#chain.status(signature);
    const ended = found?.err ? ("landed_failed" as const) : ("landed" as const);
    return {
      signature,
      state: found ? ended : "open",
      method: request.method,
      bundleId: null,
      receivedNs: request.receivedNs,
      slot: found?.slot ?? null,
      reason: found ? ended : null,
      err: found?.err ?? null,
      events: [],
    };
  }
}

export interface GatewayClusterOptions {
  readonly scopes?: readonly Scope[];
  /** false: no node is configured. */
  readonly hasNode?: boolean;
}

export class GatewayCluster implements TestService {
  readonly cluster: Cluster;
  readonly submissions: ChainSubmissions;
  /** "ip:port" of HTTP; the next port answers as well. */
  readonly address: string;
  readonly key: string;
  readonly #servers: readonly HttpServer[];
  readonly #upstream: Upstream;

  private constructor(
    parts: Pick<GatewayCluster, "cluster" | "submissions" | "key">,
    upstream: Upstream,
    servers: readonly HttpServer[],
  ) {
    this.cluster = parts.cluster;
    this.submissions = parts.submissions;
    this.key = parts.key;
    this.address = servers[0]?.addresses[0] ?? "";
    this.#upstream = upstream;
    this.#servers = servers;
  }

  static async open(options: GatewayClusterOptions = {}): Promise<GatewayCluster> {
    const cluster = await Cluster.open();
    const { chain } = cluster;
    const submissions = new ChainSubmissions(chain);
    const upstream = Upstream.open({ rpc: cluster.url, clock: systemClock });
    const node = options.hasNode === false ? null : upstream;
    const statusNode = new RpcClient(cluster.url);
    const reader = new StatusReader({ clock: systemClock, node: statusNode, log: console });
    const key = randomBytes(16).toString("hex");
    const known = apiKey(options.scopes);
    const parts: GatewayDependencies = {
      clock: systemClock,
      keys: {
        find: (text) => (text === key ? known : null),
        get: (id) => (id === known.id ? known : null),
        allows: () => true,
      },
      publicKeys: new TestPublicKeys(systemClock, () => []).publicKeys,
      limits: { take: () => allowed },
      inspector: inspectorFor([tipAddress]),
      verifier: { verify },
      base58: { decode: (text) => decodeBase58(text, 8000), encode: encodeBase58 },
      submissions,
      signer: signerOf(1),
      bundleCommitments: new NodeBundleCommitments({ clock: systemClock, reader: node && reader }),
      preflight: node && preflightOf(node),
      reads: readMethodsOf(node),
      sockets: node,
      shreds: null,
      tipFloor: null,
      tipHistory: null,
      nonces: null,
      tracker: noPartners,
      pages: [],
      slot: () => chain.slot("processed"),
    };
    const region = { name: "local", url: null, tipAddresses: [tipAddress], shredTipAddresses: [] };
    const gateway = new Gateway(parts, {
      regions: [region],
      withholdsShredTips: false,
      minimumTipLamports,
      minimumTipLamportsByMethod: {},
      readMethods: new Set(readMethodNames),
      partnerUnitLamports: 10n,
      trustedProxies: [],
    });
    const servers = await listen(gateway);
    return new GatewayCluster({ cluster, submissions, key }, upstream, servers);
  }

  /** URL with the key: the only setting of a stock client. */
  get url(): string {
    return `http://${this.address}/?api-key=${this.key}`;
  }

  get webSocketUrl(): string {
    return this.url.replace("http", "ws");
  }

  close(): void {
    for (const server of this.#servers) server.close();
    void this.#upstream.close();
    this.cluster.close();
  }
}

const allowed = {
  allowed: true,
  limit: 1000,
  remaining: 999,
  retryAfterSeconds: 0,
  resetSeconds: 0,
};

function apiKey(scopes: readonly Scope[] = ["submit", "read"]): ApiKey {
  return {
    id: "k_test",
    accountId: "a_test",
    accountName: "test",
    hash: new Uint8Array(32),
    hint: "test",
    label: "",
    scopes,
    requestsPerSecond: null,
    burst: null,
    allowedRanges: [],
    createdNs: 0n,
    expiresNs: null,
    revokedNs: null,
  };
}

/** Listens on a free port and the next one. */
async function listen(gateway: Gateway): Promise<readonly HttpServer[]> {
  const options = gateway.serverOptions();
  for (;;) {
    const first = await HttpServer.open({ ...options, listen: ["127.0.0.1:0"] });
    const endpoint = parseEndpoint(first.addresses[0] ?? "");
    try {
      const above = formatEndpoint({ ...endpoint, port: endpoint.port + 1 });
      return [first, await HttpServer.open({ ...options, listen: [above] })];
    } catch {
      first.close(); // the next port is in use, or does not exist
    }
  }
}

/** A new payer, funded through the node itself: the gateway has no airdrops. */
export async function fundedPayer(gateway: GatewayCluster): Promise<Keypair> {
  const payer = Keypair.generate();
  const node = new Connection(gateway.cluster.url, "confirmed");
  const latest = await node.getLatestBlockhash();
  const signature = await node.requestAirdrop(payer.publicKey, 1000 * LAMPORTS_PER_SOL);
  await node.confirmTransaction({ signature, ...latest });
  return payer;
}
