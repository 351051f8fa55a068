import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFolders, readTextFile } from "../../src/core/files.ts";
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

describe("createFolders", () => {
  const modeOf = (path: string) => statSync(path).mode & 0o777;

  it("creates the missing parents with the same mode, and accepts existing folders", () => {
    const below = join(folder, "a", "b", "c");
    createFolders(below, 0o700);
    createFolders(below, 0o755);
    for (const path of [join(folder, "a"), join(folder, "a", "b"), below])
      expect(modeOf(path)).toBe(0o700);
    const link = join(folder, "link");
    symlinkSync(below, link);
    createFolders(join(link, "d"), 0o711);
    expect(modeOf(join(below, "d"))).toBe(0o711);
    createFolders("/", 0o700);
  });

  it("throws the system's error if a file or a dangling link is in the way", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    expect(() => createFolders(file, 0o700)).toThrow("EEXIST");
    expect(() => createFolders(join(file, "a", "b"), 0o700)).toThrow("ENOTDIR");
    const link = join(folder, "dangling");
    symlinkSync(join(folder, "nowhere"), link);
    expect(() => createFolders(link, 0o700)).toThrow("EEXIST");
  });
});
