import { readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it } from "vitest";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import { RelayService } from "../../src/relay/relay-service.ts";
import { relayOptionsOf } from "../../src/relay/relay-tables.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

const config = parseConfig(
  'relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off, lockMemory: true }',
  "a.yaml",
);

let opened: { close(): void }[] = [];
afterEach(() => {
  for (const part of opened) part.close();
  opened = [];
});

function openRelay(): Relay {
  const relay = Relay.open({ ...relayOptionsOf(config.relay), prefault: false });
  opened.push(relay);
  return relay;
}

function serviceOf(relay: Relay) {
  const lines: string[] = [];
  const service = new RelayService({
    relay,
    config,
    readLeaders: () => {
      throw new Error("not used");
    },
    readOwnAddresses: () => [],
    log: createLogger({ stream: { write: (line) => void lines.push(line) } }),
    clock: new ManualClock(),
  });
  return { service, lines };
}

const lockedBytes = () =>
  1024 * Number(/^VmLck:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]);

/** Makes JavaScript return memory to the kernel. */
function shrinkHeap(): void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  let objects = Array.from({ length: 200_000 }, (_, i) => ({ text: `${i}`, list: [i] }));
  objects = objects.filter((_, i) => i % 9 === 0);
  for (let i = 0; i < 3; i++) {
    if (typeof collect !== "function") throw new Error("expected gc() of --expose-gc");
    collect({ type: "major", execution: "sync", flavor: "last-resort" });
  }
  expect(objects.length).toBeGreaterThan(0);
}

describe("relay.lockMemory", () => {
  it("locks the workers' memory, or says what it needs, and JavaScript still returns memory", () => {
    const before = lockedBytes();
    const { memoryLock } = openRelay();
    if (memoryLock.refusal === null) {
      expect(memoryLock.bytes).toBeGreaterThan(300e6);
      expect(lockedBytes() - before).toBeGreaterThan(300e6);
    } else {
      expect(memoryLock.bytes).toBe(0);
      expect(memoryLock.refusal).toMatch(
        /; expected a limit of locked memory of at least \d+ bytes, got \d+ bytes$/,
      );
    }
    shrinkHeap();
    for (const part of opened) part.close();
    expect(lockedBytes()).toBe(before);
  });

  it("is off by default", () => {
    const { lockMemory } = parseConfig(
      "relay: { shredVersion: 1, authentication: off }",
      "a.yaml",
    ).relay;
    expect(lockMemory).toBe(false);
  });

  it.each([
    [{ bytes: 5000, refusal: null }, 1, ""],
    [
      { bytes: 0, refusal: "Cannot allocate memory; expected …, got 65536 bytes" },
      0,
      "relay.lockMemory is true, but the workers' memory is not locked: Cannot allocate memory; expected …, got 65536 bytes",
    ],
  ])("logs a lock, and warns of a refusal: %j", async (memoryLock, logged, warning) => {
    const relay = Object.defineProperty(openRelay(), "memoryLock", { value: memoryLock });
    const { service, lines } = serviceOf(relay);
    await service.start();
    expect(lines.filter((line) => line.includes("is locked in RAM")).length).toBe(logged);
    expect(
      service
        .warnings()
        .filter((text) => text.includes("lockMemory"))
        .join(),
    ).toBe(warning);
  });
});
