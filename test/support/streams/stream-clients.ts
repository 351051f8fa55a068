// Decoded streams on a real listener, and clients of @grpc/grpc-js for them.

import { fileURLToPath } from "node:url";
import {
  type Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  type GrpcObject,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import { createLogger } from "../../../src/core/log.ts";
import type { NodeCall } from "../../../src/relay/streams/lookup-table-node.ts";
import type { StreamKey } from "../../../src/relay/streams/stream-access.ts";
import { StreamService } from "../../../src/relay/streams/stream-service.ts";
import { ManualClock } from "../clocks/manual-clock.ts";
import { closing } from "../closing.ts";
import { openStreamRelay, type StreamRelay } from "./stream-relay.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));

function serviceOf(file: string, name: string, service: string): ServiceClientConstructor {
  const options = { includeDirs: [folder], longs: Number, keepCase: true, oneofs: true };
  const packages = loadPackageDefinition(loadSync(file, options));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the .proto file declares it
  return (packages[name] as GrpcObject)[service] as ServiceClientConstructor;
}

const Geyser = serviceOf("streams.proto", "geyser", "Geyser");
const ShredstreamProxy = serviceOf("shredstream-proxy.proto", "shredstream", "ShredstreamProxy");
const Shreder = serviceOf("shreder.proto", "shredstream", "ShrederService");

export interface RunningStreams extends StreamRelay {
  readonly service: StreamService;
  readonly clock: ManualClock;
  /** API keys by their text; a test changes them. */
  readonly keys: Map<string, StreamKey>;
  /** Tiers by account. */
  readonly tiers: Map<string, string>;
}

/**
 * `section`: keys of the section `streams`. The key "alice" belongs to an account of tier-1. `callNode`: the
 * node that has the address lookup tables.
 */
export async function runningStreams(
  section = "",
  relayOptions: Parameters<typeof openStreamRelay>[0] = {},
  callNode?: NodeCall,
): Promise<RunningStreams> {
  const { streams } = parseConfig(
    `relay: { shredVersion: 1, authentication: off, sources: [ { name: a, address: 127.0.0.2, tier: tier-1 } ] }
http: { listen: "127.0.0.1:0" }
tips: { addresses: [ "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5" ] }
streams: { listen: "127.0.0.1:0"${section === "" ? "" : `, ${section}`} }`,
    "a.yaml",
  );
  if (!streams) throw new Error("expected the section streams");
  const relay = openStreamRelay(relayOptions);
  const clock = ManualClock.running();
  const key = (id: string): StreamKey => ({
    id,
    accountId: `account of ${id}`,
    accountName: id,
    scopes: ["stream"],
  });
  const keys = new Map([["alice", key("alice")]]);
  const tiers = new Map([["account of alice", "tier-1"]]);
  const service = closing(
    new StreamService({
      config: streams,
      streams: relay.relay.streams,
      access: {
        authenticate: (_, text) => {
          const found = keys.get(text);
          if (!found) throw new ShredwayError("unauthorized", "invalid API key");
          return found;
        },
        current: (id) => [...keys.values()].find((one) => one.id === id) ?? null,
        tierOf: (accountId) => tiers.get(accountId) ?? null,
      },
      chain: { slot: () => 123n },
      callNode,
      clock,
      log: createLogger({ level: "silent" }),
    }),
  );
  await service.start();
  return { ...relay, service, clock, keys, tiers };
}

export function metadataOf(entries: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}

/** Messages that a client received, and the end of its stream. */
export interface Received<T> {
  readonly pause: () => void;
  readonly resume: () => void;
  readonly messages: T[];
  /** undefined: the stream is open. `code` 0: it ended without an error. */
  end: Pick<ServiceError, "code" | "details"> | undefined;
}

function collect<T>(stream: ClientReadableStream<T> | ClientDuplexStream<unknown, T>): Received<T> {
  const received: Received<T> = {
    messages: [],
    end: undefined,
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
  };
  stream.on("data", (message: T) => received.messages.push(message));
  stream.on("error", (error: ServiceError) => {
    received.end = { code: error.code, details: error.details };
  });
  stream.on("end", () => {
    received.end ??= { code: 0, details: "" };
  });
  return received;
}

function clientOf(Service: ServiceClientConstructor, address: string): Client {
  const options = {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.max_receive_message_length": 64 << 20,
  };
  return closing(new Service(address, credentials.createInsecure(), options));
}

type Call = (...args: unknown[]) => unknown;

/** Calls a method of a generated client. */
function callOf(client: Client, method: string): Call {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the .proto file declares it
  const call = (client as unknown as Record<string, Call>)[method];
  if (!call) throw new Error(`expected a method ${method}`);
  return call.bind(client);
}

export interface EntryMessage {
  readonly slot: number;
  readonly entries: Buffer;
  readonly dropped?: {
    readonly count: number;
    readonly first_slot: number;
    readonly last_slot: number;
  } | null;
}

export function subscribeEntries(
  address: string,
  metadata: Metadata = metadataOf({ "x-token": "alice" }),
): Received<EntryMessage> & { readonly call: ClientReadableStream<EntryMessage> } {
  const call = callOf(clientOf(ShredstreamProxy, address), "SubscribeEntries")({}, metadata);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a call with a stream of responses
  const stream = call as ClientReadableStream<EntryMessage>;
  return Object.assign(collect(stream), { call: stream });
}

export interface DeshredUpdate {
  readonly filters: readonly string[];
  readonly update?: string;
  readonly deshred_transaction?: {
    readonly slot: number;
    readonly transaction: {
      readonly signature: Buffer;
      /** Absent: empty. */
      readonly loaded_writable_addresses?: readonly Buffer[];
      readonly loaded_readonly_addresses?: readonly Buffer[];
    };
  };
  readonly deshred_update_parent?: {
    readonly slot: number;
    readonly update_parent_fec_set_index: number;
    readonly parent_slot: number;
    readonly parent_block_id: Buffer;
  };
}

export interface DeshredClient extends Received<DeshredUpdate> {
  readonly call: ClientDuplexStream<unknown, DeshredUpdate>;
}

/** Shreder's name of the call. */
export function subscribeShrederEntries(address: string): Received<EntryMessage> {
  const metadata = metadataOf({ "x-token": "alice" });
  const call = callOf(clientOf(Shreder, address), "SubscribeEntries")({}, metadata);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a call with a stream of responses
  return collect(call as ClientReadableStream<EntryMessage>);
}

interface WithFilters {
  readonly filters: readonly string[];
}

export interface PreprocessedUpdate extends WithFilters {
  readonly update?: string;
  readonly transaction?: {
    readonly slot: number;
    readonly transaction: { readonly signature: Buffer; readonly is_vote: boolean };
  };
}

export interface ShrederUpdate extends WithFilters {
  readonly created_at: { readonly seconds: number };
  readonly transaction: {
    readonly slot: number;
    readonly transaction: { readonly signatures: readonly Buffer[]; readonly message: object };
  };
}

export interface TransactionsClient<T> extends Received<T> {
  readonly call: ClientDuplexStream<unknown, T>;
}

function subscribeTo<T>(client: Client, method: string, request: unknown): TransactionsClient<T> {
  const call = callOf(client, method)(metadataOf({ "x-token": "alice" }));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a call with streams
  const stream = call as ClientDuplexStream<unknown, T>;
  const received = collect(stream);
  stream.write(request);
  return Object.assign(received, { call: stream });
}

/** `request`: the first one, in the form of streams.proto. */
export function subscribePreprocessed(
  address: string,
  request: unknown,
): TransactionsClient<PreprocessedUpdate> {
  return subscribeTo(clientOf(Geyser, address), "SubscribePreprocessed", request);
}

/** `request`: the first one, in the form of shreder.proto. */
export function subscribeTransactions(
  address: string,
  request: unknown,
): TransactionsClient<ShrederUpdate> {
  return subscribeTo(clientOf(Shreder, address), "SubscribeTransactions", request);
}

/** `request`: the first one, in the form of streams.proto. */
export function subscribeDeshred(
  address: string,
  request: unknown,
  {
    metadata = metadataOf({ "x-token": "alice" }),
    method = "SubscribeDeshred",
  }: { readonly metadata?: Metadata; readonly method?: string } = {},
): DeshredClient {
  const call = callOf(clientOf(Geyser, address), method)(metadata);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a call with streams
  const stream = call as ClientDuplexStream<unknown, DeshredUpdate>;
  const received = collect(stream);
  stream.write(request);
  return Object.assign(received, { call: stream });
}
