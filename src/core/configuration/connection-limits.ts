// Limits of callers' connections: lowered at the start, so that callers cannot use all descriptors of the process.
//
// Without it, a low limit of open files would let callers keep out the partners, the node and the health checks.
// Used by the composition of the service and by `shredway doctor`. Pure.

import { openFilesLeast } from "../files.ts";
import type { Config } from "./configuration.ts";
import { connectionsLimitOf } from "./derived.ts";

/** Limits of the servers of gRPC, unless they are lowered. */
export const streamConnectionsMax = 4096;
const subscriberConnectionsMax = 1024;

type LimitedConfig = Pick<Config, "http" | "streams" | "shredstream"> & {
  readonly gateway: Pick<Config["gateway"], "fastPath">;
  readonly relay: Pick<Config["relay"], "workers" | "listen">;
};

interface ConnectionLimits {
  /** For each server of HTTP. */
  readonly http: number;
  readonly streams: number;
  readonly subscribers: number;
}

/** Descriptors that the service needs beside the connections of callers. */
export function ownFilesOf(workers: number, listenAddresses: number): number {
  return Math.max(openFilesLeast, workers * (listenAddresses + 3) + 64);
}

function callersOf({ http, streams, shredstream }: LimitedConfig): number {
  return (
    (http ? connectionsLimitOf(http) : 0) +
    (streams ? streamConnectionsMax : 0) +
    (shredstream ? subscriberConnectionsMax : 0)
  );
}

/** Descriptors for all connections that the configuration allows. */
export function callerFilesOf(config: LimitedConfig): number {
  const { http, gateway, relay } = config;
  const callers = callersOf(config);
  if (!http || !gateway.fastPath) return callers;
  // The fast path uses one more for each connection, up to a quarter of all.
  const third = Math.ceil((ownFilesOf(relay.workers, relay.listen.length) + callers) / 3);
  return callers + Math.min(connectionsLimitOf(http), third);
}

/** `filesMax`: descriptors that the process may open; null: unknown. */
export function connectionLimitsOf(
  config: LimitedConfig,
  filesMax: number | null,
): ConnectionLimits {
  const { http, gateway, relay } = config;
  const wanted = {
    http: http?.connectionsMax ?? 0,
    streams: streamConnectionsMax,
    subscribers: subscriberConnectionsMax,
  };
  const own = ownFilesOf(relay.workers, relay.listen.length);
  if (filesMax === null || filesMax >= own + callerFilesOf(config)) return wanted;
  const ofFastPath = http && gateway.fastPath ? Math.ceil(filesMax / 4) : 0;
  const share = Math.max(0, filesMax - own - ofFastPath) / callersOf(config);
  const lowered = (limit: number): number =>
    Math.max(1, Math.min(limit, Math.floor(limit * share)));
  return {
    http: lowered(wanted.http),
    streams: lowered(wanted.streams),
    subscribers: lowered(wanted.subscribers),
  };
}

/** `limit`: files that the process may have open; null: unknown. */
export function openFilesWarnings(config: LimitedConfig, limit: number | null): string[] {
  const { http, shredstream, relay } = config;
  if (limit === null) return [];
  const effective = connectionLimitsOf(config, limit);
  const own = ownFilesOf(relay.workers, relay.listen.length);
  const because =
    `because this process may open only ${limit} files, and partners, health checks and the service itself need ` +
    `${own} of them; expected a limit of at least ${own + callerFilesOf(config)} (LimitNOFILE= in the systemd unit)`;
  // All limits are lowered together, so one warning suffices.
  if (http && effective.http < http.connectionsMax) {
    return [
      `gateway: http.connectionsMax is ${http.connectionsMax}, but each listener accepts only ${effective.http} ` +
        `connections, ${because}, or a smaller http.connectionsMax`,
    ];
  }
  if (http || !shredstream || effective.subscribers === subscriberConnectionsMax) return [];
  return [
    `shredstream: the listener accepts only ${effective.subscribers} connections instead of ` +
      `${subscriberConnectionsMax}, ${because}`,
  ];
}
