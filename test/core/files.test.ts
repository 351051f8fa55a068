import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readTextFile } from "../../src/core/files.ts";
import { openCapture } from "../../src/relay/captures/read-capture.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "shredway-files-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("readTextFile", () => {
  const read = (path: string) => readTextFile(path, 8, "config_invalid");

  it("reads up to the limit, and UTF-8 only", () => {
    const path = join(folder, "text");
    writeFileSync(path, "12345678");
    expect(read(path)).toBe("12345678");
    writeFileSync(path, "123456789");
    expect(() => read(path)).toThrow(`${path}: expected at most 8 bytes, got more`);
    writeFileSync(path, Uint8Array.of(0xff));
    expect(() => read(path)).toThrow("expected UTF-8 text");
    expect(readTextFile("/proc/self/comm", 100, "config_invalid")).not.toBe("");
  });

  it("never blocks: rejects a pipe without a writer immediately", () => {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    expect(() => read(pipe)).toThrow(
      `${pipe}: cannot be read: expected a regular file, got a pipe`,
    );
    expect(() => openCapture(pipe)).toThrow("expected a regular file, got a pipe");
  });

  it("rejects devices and folders", () => {
    expect(() => read(folder)).toThrow("expected a regular file, got a folder");
    expect(() => read("/dev/zero")).toThrow("expected a regular file, got a device");
    expect(() => openCapture("/dev/zero")).toThrow("expected a regular file, got a device");
  });
});
