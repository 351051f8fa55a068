import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLogger, warningLine } from "../../src/core/log.ts";
import { LogOutput } from "../../src/core/log-output.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const { O_NONBLOCK, O_RDWR, O_WRONLY } = constants;

function opened(path: string, flags: number): number {
  const file = openSync(path, flags);
  onTestFinished(() => closeSync(file));
  return file;
}

/** A pipe whose other end this test reads, or leaves unread. */
function pipe(): number {
  const path = join(temporaryFolder(), "pipe");
  execFileSync("mkfifo", [path]);
  return opened(path, O_RDWR | O_NONBLOCK);
}

function available(file: number): string {
  const buffer = Buffer.alloc(256 * 1024);
  let length = 0;
  try {
    for (;;) length += readSync(file, buffer, length, buffer.length - length, null);
  } catch {
    return buffer.toString("utf8", 0, length);
  }
}

/** A process that logs more than a pipe holds, then prints a line. It never reads `process.stderr` itself. */
const loggingProgram = `
import { createLogger } from "${new URL("../../src/core/log.ts", import.meta.url).href}";
const log = createLogger();
const text = "x".repeat(1000);
for (let i = 0; i < 500; i++) log.info(text);
console.log("logged");
`;

describe("log output", () => {
  it("to a pipe that nobody reads does not block a program", async () => {
    const words = ["--import", "tsx", "--input-type=module", "--eval", loggingProgram];
    const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    const printed = once(child.stdout, "data").then(([text]) => String(text));
    const ended = once(child, "exit").then(
      ([code, signal]) => `ended with ${code ?? signal}: ${child.stderr.read()}`,
    );
    expect(await Promise.race([printed, ended])).toBe("logged\n");
  });

  it("goes on while nobody reads, and continues with whole lines and the count of lost ones", () => {
    const file = pipe();
    const output = new LogOutput({ write: (bytes) => writeSync(file, bytes), warningLine });
    const log = createLogger({ stream: output });
    const text = "x".repeat(997);
    for (let i = 0; i < 3000; i++) log.info({ i }, text);
    let all = "";
    for (let rest = available(file); rest !== ""; rest = available(file)) {
      all += rest;
      output.flush();
    }
    log.info({ i: 3000 }, text);
    all += available(file);
    const lines = all.trimEnd().split("\n");
    const parsed = lines.map((line): { i?: number; msg: string } => JSON.parse(line));
    const kept = parsed.length - 2;
    expect(kept).toBeGreaterThan(900);
    expect(parsed.slice(0, kept).map(({ i }) => i)).toEqual([...Array(kept).keys()]);
    expect(parsed.at(-2)?.msg).toBe(
      `log: ${3000 - kept} lines lost here, because the log could not be written: EAGAIN`,
    );
    expect(parsed.at(-1)?.i).toBe(3000);
  });

  it("goes on while the disk is full, and writes the lines when it has space", () => {
    const path = join(temporaryFolder(), "log");
    const disk = opened(path, constants.O_CREAT | O_RDWR);
    let file = opened("/dev/full", O_WRONLY);
    const log = createLogger({
      stream: new LogOutput({ write: (bytes) => writeSync(file, bytes), warningLine }),
    });
    log.info("first");
    log.info("second");
    file = disk;
    log.info("third");
    const buffer = Buffer.alloc(4096);
    const text = buffer.toString("utf8", 0, readSync(disk, buffer, 0, buffer.length, 0));
    const messages = text.trimEnd().split("\n");
    expect(messages.map((line) => JSON.parse(line).msg)).toEqual(["first", "second", "third"]);
  });
});
