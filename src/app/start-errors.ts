// Errors of the startup: names the configuration key and the remedy for ports, CPUs and folders.
//
// Called by open-service.ts and service.ts. The parts of the service know addresses and numbers, and
// not the keys that contain them.

import { readFileSync } from "node:fs";
import { parseEndpoint, withPortZero } from "../core/addresses/addresses.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { describeListenerKey, tcpListenersOf } from "../core/configuration/tcp-listeners.ts";
import { messageOf, reworded, ShredwayError } from "../core/errors.ts";

/** The CPUs that this thread may use, as "0-3"; null: unknown. */
export function permittedCpus(): string | null {
  try {
    const status = readFileSync("/proc/self/status", "utf8");
    return /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? null;
  } catch {
    return null;
  }
}

/** `; ss -ulpn 'sport = :20000' shows the program …`, for a port in use. */
function portRemedy(message: string, address: string, sockets: "-u" | "-t", key: string): string {
  if (!/in use/.test(message)) return `; correct ${key}`;
  const { port } = parseEndpoint(address, { allowPortZero: true });
  return (
    `; stop the program that uses it (ss ${sockets}lpn 'sport = :${port}' shows it), ` +
    `or change ${key}`
  );
}

function udpText(message: string, { relay }: Config, known: string | null): string {
  const cpu = /cannot pin a worker to CPU (\d+)/.exec(message)?.[1];
  if (cpu !== undefined) {
    const expected = known === null ? "a CPU of this machine" : `CPUs of this process: ${known}`;
    if (!Array.isArray(relay.cpus))
      return `relay.cpus: ${message}; expected ${expected}; "none" lets the kernel place the workers`;
    return `relay.cpus[${relay.cpus.indexOf(Number(cpu))}]: ${message}; expected ${expected}`;
  }
  const { source } = relay.send;
  if (source !== undefined && message.startsWith(`bind ${withPortZero(source)}: `))
    return `relay.send.source: ${message}`;
  const address = relay.listen.find((one) => message.includes(one));
  if (address === undefined) return message;
  const [fact = message] = message.split(";");
  return `relay.listen: ${fact}${portRemedy(message, address, "-u", "relay.listen")}`;
}

function quicText(message: string, { quic }: Config): string {
  for (const key of ["listen", "protectedListen", "swqosOnlyListen"] as const) {
    const address = quic?.[key].find((one) => message.includes(`on ${one} (UDP)`));
    if (address === undefined) continue;
    const [fact = message] = message.split(";");
    return `quic.${key}: ${fact}${portRemedy(message, address, "-u", `quic.${key}`)}`;
  }
  return message;
}

function tcpText(message: string, config: Config): string {
  const listener = tcpListenersOf(config).find(({ address }) => message.includes(`on ${address}:`));
  if (!listener) return message;
  const { address, key } = listener;
  return `${describeListenerKey(listener)}: ${message}${portRemedy(message, address, "-t", key)}`;
}

/**
 * The same error with the configuration's key and a remedy; other errors stay unchanged. `permitted`: the
 * CPUs of this process before its threads were moved.
 */
export function withConfigurationKey(
  error: unknown,
  config: Config,
  permitted: string | null,
): unknown {
  if (!(error instanceof ShredwayError)) return error;
  const message = messageOf(error);
  if (error.reason === "relay_open") return reworded(error, udpText(message, config, permitted));
  if (error.reason === "http_open") return reworded(error, tcpText(message, config));
  if (error.reason === "quic_open") return reworded(error, quicText(message, config));
  if (error.reason === "store_failed" && message.startsWith(config.data.directory)) {
    return reworded(error, `data.directory: ${message}`);
  }
  return error;
}
