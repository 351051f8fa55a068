import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type ManagerEnvironment, ServiceManager } from "../../src/app/service-manager.ts";
import { createLogger } from "../../src/core/log.ts";
import { notifyServiceManager } from "../../src/relay/data-plane/native.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { closing } from "../support/closing.ts";
import { NotifySocket } from "../support/processes/notify-socket.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const socketed = { NOTIFY_SOCKET: "/run/notify" };

/** A service manager that records the texts. */
function managed(environment: ManagerEnvironment, failure = "") {
  const clock = new ManualClock();
  const notifications: string[] = [];
  const logged: string[] = [];
  const log = createLogger({ stream: { write: (line) => logged.push(line) } });
  const send = (address: string, text: string) => {
    notifications.push(`${address} ${text}`);
    return failure;
  };
  const manager = new ServiceManager({ environment, pid: 77, send, clock, log });
  return { manager, clock, sent: notifications, logged };
}

describe("ServiceManager", () => {
  it("sends nothing without a socket", async () => {
    const { manager, clock, sent } = managed({ NOTIFY_SOCKET: "", WATCHDOG_USEC: "1000000" });
    manager.starting();
    manager.ready("ready");
    manager.reload(() => "reloaded");
    manager.watch(() => [0n]);
    manager.stopping();
    await clock.advance(60_000);
    expect(sent).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it("extends the start timeout until it is ready, and again while it drains", async () => {
    const { manager, clock, sent } = managed(socketed);
    manager.starting();
    await clock.advance(20_000);
    const extended = "/run/notify EXTEND_TIMEOUT_USEC=60000000\nSTATUS=starting";
    expect(sent).toEqual(["/run/notify STATUS=starting", extended, extended, extended]);
    manager.ready("ready workers=2\nlisten=[::]:1");
    await clock.advance(60_000);
    expect(sent.slice(4)).toEqual(["/run/notify READY=1\nSTATUS=ready workers=2 listen=[::]:1"]);
    manager.stopping();
    await clock.advance(10_000);
    expect(sent.slice(5).map((text) => text.split("\n")[0])).toEqual([
      "/run/notify STOPPING=1",
      "/run/notify EXTEND_TIMEOUT_USEC=60000000",
      "/run/notify EXTEND_TIMEOUT_USEC=60000000",
    ]);
    manager.close();
    expect(clock.pending).toBe(0);
  });

  it("reports a reload with its begin time", async () => {
    const { manager, clock, sent } = managed(socketed);
    await clock.advance(1234);
    manager.reload(() => {
      sent.push("reload");
      return "ready";
    });
    expect(sent).toEqual([
      "/run/notify RELOADING=1\nMONOTONIC_USEC=1234000\nSTATUS=reloading",
      "reload",
      "/run/notify READY=1\nSTATUS=ready",
    ]);
  });

  it.each([
    [{ WATCHDOG_USEC: "30000000" }, 10_000],
    [{ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "77" }, 10_000],
    [{ WATCHDOG_USEC: "3000000" }, 1000],
    [{ WATCHDOG_USEC: "3600000000" }, 10_000],
  ])("pings three times per period, at least every 10 s: %o", async (environment, periodMs) => {
    const { manager, clock, sent } = managed({ ...socketed, ...environment });
    let cpuNs = 0n;
    manager.watch(() => [cpuNs++]);
    await clock.advance(3 * periodMs);
    expect(sent).toEqual(Array.from({ length: 4 }, () => "/run/notify WATCHDOG=1"));
    manager.close();
    expect(clock.pending).toBe(0);
  });

  it.each([
    {},
    { WATCHDOG_USEC: "0" },
    { WATCHDOG_USEC: "soon" },
    { WATCHDOG_USEC: "1000000", WATCHDOG_PID: "78" },
  ])("sends no pings for %o", async (environment) => {
    const { manager, clock, sent } = managed({ ...socketed, ...environment });
    manager.watch(() => [0n]);
    await clock.advance(60_000);
    expect(sent).toEqual([]);
  });

  it("stops pinging while a worker makes no progress, and reports the worker once", async () => {
    const { manager, clock, sent, logged } = managed({ ...socketed, WATCHDOG_USEC: "6000000" });
    let [moving, held] = [0n, 0n];
    let isStalled = false;
    manager.watch(() => [++moving, isStalled ? held : ++held]);
    await clock.advance(4000);
    isStalled = true;
    sent.length = 0;
    await clock.advance(20_000);
    expect(sent.filter((text) => text.endsWith("WATCHDOG=1")).length).toBe(2); // up to 5 s
    expect(sent.filter((text) => text.includes("STATUS=systemd: no watchdog ping")).length).toBe(1);
    expect(logged.filter((line) => line.includes("workers make no progress: 1")).length).toBe(1);
    isStalled = false;
    sent.length = 0;
    await clock.advance(2000);
    expect(sent).toEqual(["/run/notify WATCHDOG=1"]);
  });

  it("warns once if it cannot send", () => {
    const { manager, logged } = managed(socketed, "sendto: Connection refused");
    manager.ready("ready");
    manager.status("more");
    expect(logged.length).toBe(1);
    expect(logged[0]).toContain("could not send READY=1: sendto: Connection refused");
  });
});

describe("notifyServiceManager", () => {
  it("reaches sockets with a path and abstract sockets", async () => {
    for (const address of [join(temporaryFolder(), "notify"), `@shredway-test-${process.pid}`]) {
      const socket = closing(await NotifySocket.open(address));
      expect(notifyServiceManager(address, "READY=1\nSTATUS=grün")).toBe("");
      expect(notifyServiceManager(address, "STOPPING=1")).toBe("");
      await socket.hears(/^STOPPING=1$/);
      expect(socket.received).toEqual(["READY=1\nSTATUS=grün", "STOPPING=1"]);
    }
  });

  it("returns the reason if it cannot send", () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "notify"));
    expect(notifyServiceManager(join(folder, "gone"), "A=1")).toMatch(/^sendto: No such file/);
    expect(notifyServiceManager(join(folder, "notify"), "A=1")).toMatch(/^sendto: /);
    expect(notifyServiceManager("@shredway-nobody", "A=1")).toMatch(/^sendto: Connection refused/);
    expect(notifyServiceManager("vsock:2:1234", "A=1")).toMatch(/^expected a path or @name/);
    expect(notifyServiceManager("", "A=1")).toMatch(/^expected a path or @name/);
    expect(notifyServiceManager(`/${"x".repeat(107)}`, "A=1")).toMatch(/^expected at most 107/);
  });
});
