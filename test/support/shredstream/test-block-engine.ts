// A test block engine: a gRPC server by @grpc/grpc-js and protobufjs, independent of the product's code.
//
// It checks what a block engine checks, records every call, and fails on request.

import { randomBytes, verify } from "node:crypto";
import { fileURLToPath } from "node:url";
import {
  type GrpcObject,
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceClientConstructor,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import protobufjs from "protobufjs";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { publicKeyOf } from "../../../src/core/key-pair.ts";
import { selfSignedCertificate, selfSignedKey } from "../quic/self-signed.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** The services of the .proto files in this folder. */
export function blockEngineServices(): Record<
  "AuthService" | "Shredstream",
  ServiceClientConstructor
> {
  const definition = loadSync(["auth.proto", "shredstream.proto"], {
    includeDirs: [folder],
    longs: Number,
    keepCase: true,
  });
  const packages = loadPackageDefinition(definition);
  const serviceOf = (name: string, service: string): ServiceClientConstructor => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the .proto file declares it
    return (packages[name] as GrpcObject)[service] as ServiceClientConstructor;
  };
  return {
    AuthService: serviceOf("auth", "AuthService"),
    Shredstream: serviceOf("shredstream", "Shredstream"),
  };
}

/** The messages of the .proto files in this folder, for encoding without a server. */
export function blockEngineMessages(): protobufjs.Root {
  const root = new protobufjs.Root();
  root.resolvePath = (_, target) => (target.startsWith("google") ? target : `${folder}/${target}`);
  root.loadSync(["auth.proto", "shredstream.proto"], { keepCase: true });
  return root;
}

/** A trace packet as a block engine encodes it. */
export function traceShred(
  region: string,
  createdAt: { seconds: number; nanos: number },
): Uint8Array {
  const type = blockEngineMessages().lookupType("shredstream.TraceShred");
  const message = type.fromObject({ region, created_at: createdAt, seq_num: 7 });
  return type.encode(message).finish();
}

export type EngineMethod = "challenge" | "tokens" | "refresh" | "heartbeat";

interface ReceivedHeartbeat {
  readonly ip: string;
  readonly port: number;
  readonly regions: readonly string[];
  readonly authorization: string;
}

interface EngineSettings {
  ttlMs: number;
  accessSeconds: number;
  refreshSeconds: number;
  /** Returns an error for a call, or nothing. */
  refuse: (method: EngineMethod) => { code: status; details: string } | undefined;
  /** Replaces the fields of a response. */
  change: (method: EngineMethod, response: object) => object;
  /** Wall clock in milliseconds. */
  nowMs: () => number;
}

type Call = ServerUnaryCall<Record<string, unknown>, unknown>;

export class TestBlockEngine {
  readonly calls: EngineMethod[] = [];
  readonly heartbeats: ReceivedHeartbeat[] = [];
  readonly settings: EngineSettings;
  readonly #server: Server;
  readonly #challenges = new Set<string>();
  readonly #access = new Set<string>();
  readonly #refresh = new Set<string>();
  readonly url: string;
  readonly port: number;

  private constructor(server: Server, port: number, scheme: string, settings: EngineSettings) {
    this.#server = server;
    this.port = port;
    this.url = `${scheme}://127.0.0.1:${port}`;
    this.settings = settings;
  }

  static async open(
    options: Partial<EngineSettings> & { tls?: boolean; port?: number } = {},
  ): Promise<TestBlockEngine> {
    const { tls = false, port: wanted = 0, ...given } = options;
    const settings: EngineSettings = {
      ttlMs: 120_000,
      accessSeconds: 3600,
      refreshSeconds: 86_400,
      refuse: () => undefined,
      change: (_, response) => response,
      nowMs: () => Date.now(),
      ...given,
    };
    const server = new Server();
    const pair = {
      cert_chain: Buffer.from(selfSignedCertificate),
      private_key: Buffer.from(selfSignedKey),
    };
    const credentials = tls
      ? ServerCredentials.createSsl(null, [pair])
      : ServerCredentials.createInsecure();
    const known: { engine?: TestBlockEngine } = {};
    const handler =
      (method: EngineMethod, answer: (engine: TestBlockEngine, call: Call) => unknown) =>
      (call: Call, done: sendUnaryData<unknown>): void =>
        known.engine?.answer(method, () => known.engine && answer(known.engine, call), done);
    const { AuthService, Shredstream } = blockEngineServices();
    server.addService(AuthService.service, {
      GenerateAuthChallenge: handler("challenge", (engine, call) => engine.challenge(call)),
      GenerateAuthTokens: handler("tokens", (engine, call) => engine.tokens(call)),
      RefreshAccessToken: handler("refresh", (engine, call) => engine.renewed(call)),
    });
    server.addService(Shredstream.service, {
      SendHeartbeat: handler("heartbeat", (engine, call) => engine.heartbeat(call)),
    });
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${wanted}`, credentials, (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    known.engine = new TestBlockEngine(server, port, tls ? "https" : "http", settings);
    return known.engine;
  }

  countOf(method: EngineMethod): number {
    return this.calls.filter((call) => call === method).length;
  }

  /** Forgets all tokens, as after a restart. */
  forgetTokens(): void {
    this.#access.clear();
    this.#refresh.clear();
  }

  /** Cuts every connection. Idempotent. */
  close(): void {
    this.#server.forceShutdown();
  }

  private answer(method: EngineMethod, act: () => unknown, done: sendUnaryData<unknown>): void {
    this.calls.push(method);
    const refused = this.settings.refuse(method);
    if (refused) {
      done(refused, null);
      return;
    }
    try {
      done(null, this.settings.change(method, Object(act())));
    } catch (error) {
      const details = error instanceof Error ? error.message : String(error);
      done({ code: status.UNAUTHENTICATED, details }, null);
    }
  }

  private challenge({ request }: Call): unknown {
    if (request["role"] !== 3) throw new Error("role");
    const challenge = randomBytes(9).toString("base64url");
    this.#challenges.add(`${encodeBase58(bytesOf(request["pubkey"]))}-${challenge}`);
    return { challenge };
  }

  private tokens({ request }: Call): unknown {
    const { challenge, client_pubkey: key, signed_challenge: signature } = request;
    const text = String(challenge);
    if (!this.#challenges.delete(text)) throw new Error("unknown challenge");
    if (!text.startsWith(`${encodeBase58(bytesOf(key))}-`)) throw new Error("another key");
    if (!verify(null, Buffer.from(text), publicKeyOf(bytesOf(key)), bytesOf(signature))) {
      throw new Error("wrong signature");
    }
    return {
      access_token: this.#token(this.#access, this.settings.accessSeconds),
      refresh_token: this.#token(this.#refresh, this.settings.refreshSeconds),
    };
  }

  private renewed({ request }: Call): unknown {
    if (!this.#refresh.has(String(request["refresh_token"]))) throw new Error("unknown token");
    return { access_token: this.#token(this.#access, this.settings.accessSeconds) };
  }

  private heartbeat({ request, metadata }: Call): unknown {
    const authorization = String(metadata.get("authorization")[0] ?? "");
    if (!this.#access.has(authorization.replace("Bearer ", ""))) throw new Error("unknown token");
    const socket: Record<string, unknown> = Object(request["socket"]);
    const regions: unknown = request["regions"];
    this.heartbeats.push({
      ip: String(socket["ip"]),
      port: Number(socket["port"]),
      regions: Array.isArray(regions) ? regions.map(String) : [],
      authorization,
    });
    return { ttl_ms: this.settings.ttlMs };
  }

  #token(all: Set<string>, seconds: number): unknown {
    const value = randomBytes(12).toString("base64url");
    all.add(value);
    const expires = Math.floor(this.settings.nowMs() / 1000) + seconds;
    return { value, expires_at_utc: { seconds: expires, nanos: 0 } };
  }
}

function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new Error("expected bytes");
}
