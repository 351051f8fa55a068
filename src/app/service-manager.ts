// Notifications to the service manager (systemd), and its watchdog.
//
// Created by tools/commands/start.ts; does nothing without NOTIFY_SOCKET. The watchdog pings come from the
// event loop, so they stop if it hangs; they also stop while a worker makes no progress. A failed
// notification is a warning and never ends the process. Protocol: sd_notify(3), sd_watchdog_enabled(3).

import type { Clock, Timer } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";

/** Environment variables that the manager sets. */
export interface ManagerEnvironment {
  readonly NOTIFY_SOCKET?: string | undefined;
  readonly WATCHDOG_USEC?: string | undefined;
  readonly WATCHDOG_PID?: string | undefined;
}

interface ServiceManagerDependencies {
  readonly environment: ManagerEnvironment;
  readonly pid: number;
  /** Returns the reason of a failed send; an empty string means success. */
  readonly send: (address: string, text: string) => string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** CPU time that each worker has used. */
type WorkerTimes = () => readonly bigint[];

/**
 * While the program starts or stops, each notification extends the manager's timeout by this time.
 */
const extension = { everyMs: 10_000, usec: 60_000_000 } as const;
/** A worker does its housekeeping every 50 ms; even on a busy machine it runs within this time. */
const stalledMaxNs = 5_000_000_000n;
const checkMsMax = 10_000;
const pingsPerPeriod = 3;

export class ServiceManager {
  readonly #address: string | null;
  readonly #watchdogMs: number | null;
  readonly #send: ServiceManagerDependencies["send"];
  readonly #clock: Clock;
  readonly #log: Logger;
  #extending: Timer | undefined;
  #watching: Timer | undefined;
  #progress: { cpuNs: bigint; atNs: bigint }[] = [];
  #wasStalled = false;
  #warned = false;

  constructor({ environment, pid, send, clock, log }: ServiceManagerDependencies) {
    this.#address = environment.NOTIFY_SOCKET || null;
    this.#watchdogMs = watchdogMsOf(environment, pid);
    this.#send = send;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * A start may take long: for example a schema migration, or a database that is not available yet.
   */
  starting(): void {
    this.#notify("STATUS=starting");
    this.#extend("starting");
  }

  ready(status: string): void {
    this.#stopExtending();
    this.#notify("READY=1", `STATUS=${status}`);
  }

  status(text: string): void {
    this.#notify(`STATUS=${text}`);
  }

  /** Reports the begin and end of `reload`, whose result becomes the status text. */
  reload(reload: () => string): void {
    const usec = this.#clock.monotonicNs() / 1000n;
    this.#notify("RELOADING=1", `MONOTONIC_USEC=${usec}`, "STATUS=reloading");
    this.ready(reload());
  }

  stopping(): void {
    this.#notify("STOPPING=1", "STATUS=draining");
    this.#extend("draining");
  }

  /** Pings the watchdog, if it is set, while every worker makes progress. */
  watch(times: WorkerTimes): void {
    if (this.#address === null || this.#watchdogMs === null) return;
    const periodMs = Math.max(1, Math.min(checkMsMax, this.#watchdogMs / pingsPerPeriod));
    this.#checkWorkers(times);
    this.#watching = this.#clock.every(periodMs, () => this.#checkWorkers(times));
  }

  /** Stops all notifications. Idempotent. */
  close(): void {
    this.#stopExtending();
    this.#watching?.cancel();
    this.#watching = undefined;
  }

  #checkWorkers(times: WorkerTimes): void {
    const stalled = this.#stalledWorkers(times());
    if (stalled.length === 0) {
      this.#wasStalled = false;
      this.#notify("WATCHDOG=1");
      return;
    }
    if (this.#wasStalled) return;
    this.#wasStalled = true;
    const text = `systemd: no watchdog ping, because workers make no progress: ${stalled.join(", ")}`;
    this.#log.error(text);
    this.#notify(`STATUS=${text}`);
  }

  #stalledWorkers(times: readonly bigint[]): number[] {
    const nowNs = this.#clock.monotonicNs();
    this.#progress = times.map((cpuNs, worker) => {
      const before = this.#progress[worker];
      return before?.cpuNs === cpuNs ? before : { cpuNs, atNs: nowNs };
    });
    return this.#progress.flatMap(({ atNs }, worker) =>
      nowNs - atNs > stalledMaxNs ? [worker] : [],
    );
  }

  #extend(what: string): void {
    if (this.#address === null) return;
    this.#stopExtending();
    const extend = () => this.#notify(`EXTEND_TIMEOUT_USEC=${extension.usec}`, `STATUS=${what}`);
    extend();
    this.#extending = this.#clock.every(extension.everyMs, extend);
  }

  #stopExtending(): void {
    this.#extending?.cancel();
    this.#extending = undefined;
  }

  #notify(...lines: readonly string[]): void {
    if (this.#address === null) return;
    const text = lines.map((line) => line.replaceAll(/[\r\n]+/g, " ")).join("\n");
    const failure = this.#send(this.#address, text);
    if (failure === "" || this.#warned) return;
    this.#warned = true;
    this.#log.warn(`systemd: could not send ${lines[0]}: ${failure}`);
  }
}

/** null: no watchdog is set, or it is set for another process. */
function watchdogMsOf({ WATCHDOG_USEC, WATCHDOG_PID }: ManagerEnvironment, pid: number) {
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(pid)) return null;
  const usec = Number(WATCHDOG_USEC ?? "");
  return Number.isSafeInteger(usec) && usec > 0 ? usec / 1000 : null;
}
