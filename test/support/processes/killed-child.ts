// A child program that is killed while it works.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { childProgramWords } from "./child-program.ts";

/**
 * Complete lines that `program` (TypeScript) printed before the kill, `delayMs` after the first
 * line.
 */
export async function linesUntilKilled(
  program: string,
  args: readonly string[],
  delayMs: number,
): Promise<string[]> {
  const words = [...(await childProgramWords(program)), ...args];
  const running = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(running, "close");
  let printed = "";
  running.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
  });
  await Promise.race([once(running.stdout, "data"), ended]);
  await systemClock.sleep(delayMs);
  running.kill("SIGKILL");
  expect((await ended)[1]).toBe("SIGKILL");
  return printed.split("\n").slice(0, -1); // the last line may be incomplete
}
