// Slot floor: the lowest slot that the relay accepts, from the highest slot before the last restart.
//
// Old shreds are authentic for ever, and after a restart the relay does not know which ones it has sent.
// Without a floor, a replayed recording could be forwarded again, or set the first slot. The current
// slot is saved to a small file every 10 s and at the end. It counts only for the same shred version,
// which changes when a network is reset. Created by relay-service.ts.

import { renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock, Timer } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import { createFolders, fileFingerprint, readTextFile } from "../core/files.ts";
import type { Logger } from "../core/log.ts";
import { u64Max } from "../core/primitives.ts";
import type { Relay } from "./data-plane/relay.ts";

const saveIntervalMs = 10_000;
/** Shreds of the last slots may still arrive: those of 13 s. */
const lateSlots = 32n;
const fileBytesMax = 1024;

interface SlotFloorDependencies {
  readonly path: string;
  readonly shredVersion: number;
  readonly relay: Pick<Relay, "setSlotFloor">;
  /** A slot that shreds have reached; null: unknown. */
  readonly reachedSlot: () => bigint | null;
  readonly clock: Clock;
  readonly log: Logger;
}

interface SavedSlot {
  readonly slot: bigint;
  readonly shredVersion: number;
}

/** Path of the file in `data.directory`. */
export function slotFileIn(directory: string): string {
  return join(directory, "highest-slot.json");
}

/** null: nothing is saved. Throws Error if the file is unreadable. */
export function readSavedSlot(path: string): SavedSlot | null {
  if (fileFingerprint(path) === "") return null;
  return parseSavedSlot(readTextFile(path, fileBytesMax, "config_invalid"));
}

/** Throws Error. */
function parseSavedSlot(text: string): SavedSlot {
  const { slot, shredVersion }: Partial<Record<string, unknown>> = Object(JSON.parse(text));
  if (typeof slot !== "string" || !/^\d{1,20}$/.test(slot) || BigInt(slot) > u64Max)
    throw new Error(`slot: expected a decimal string, got ${JSON.stringify(slot)?.slice(0, 40)}`);
  if (typeof shredVersion !== "number") throw new Error("shredVersion: expected a number");
  return { slot: BigInt(slot), shredVersion };
}

export class SlotFloor {
  readonly #dependencies: SlotFloorDependencies;
  #timer: Timer | undefined;
  #highest = 0n;
  #failed = false;

  /** Sets the relay's floor. Never throws: an unreadable file is logged and replaced later. */
  constructor(dependencies: SlotFloorDependencies) {
    this.#dependencies = dependencies;
    this.#restore();
  }

  /** From now on, the slot is saved. */
  start(): void {
    this.#timer = this.#dependencies.clock.every(saveIntervalMs, () => this.#save());
  }

  close(): void {
    this.#timer?.cancel();
    this.#save();
  }

  #restore(): void {
    const { path, shredVersion, relay, log } = this.#dependencies;
    try {
      const saved = readSavedSlot(path);
      if (!saved) return;
      if (saved.shredVersion !== shredVersion) {
        log.info(
          `slot floor: ${path} is ignored: its shred version is ${saved.shredVersion}, relay.shredVersion is ${shredVersion}`,
        );
        return;
      }
      this.#highest = saved.slot;
      const floor = saved.slot > lateSlots ? saved.slot - lateSlots : 0n;
      relay.setSlotFloor(floor);
      log.info(
        `slot floor: shreds of slots before ${floor} are dropped, because this relay had reached slot ` +
          `${saved.slot} before it stopped. To accept older slots, stop it and delete ${path}`,
      );
    } catch (error) {
      log.warn(
        `slot floor: the highest slot before the restart is unknown, so replayed shreds may be forwarded ` +
          `again: ${path}: ${messageOf(error)}`,
      );
    }
  }

  #save(): void {
    const { path, shredVersion, reachedSlot, log } = this.#dependencies;
    const slot = reachedSlot();
    if (slot === null || slot <= this.#highest) return;
    try {
      createFolders(dirname(path), 0o700);
      // A loss of power may restore the former file, which is a few slots older.
      const beside = `${path}.new`;
      writeFileSync(beside, `${JSON.stringify({ slot: String(slot), shredVersion })}\n`, {
        mode: 0o600,
      });
      renameSync(beside, path);
      this.#highest = slot;
      if (this.#failed) log.info(`slot floor: ${path} is written again`);
      this.#failed = false;
    } catch (error) {
      if (!this.#failed) {
        log.warn(
          `slot floor: the highest slot cannot be saved, so replayed shreds may be forwarded again after ` +
            `a restart: ${messageOf(error)}`,
        );
      }
      this.#failed = true;
    }
  }
}
