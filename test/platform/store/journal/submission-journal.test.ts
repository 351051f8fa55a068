import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SqlValue } from "../../../../src/platform/store/driver.ts";
import {
  forgetJournal,
  readJournal,
  SubmissionJournal,
} from "../../../../src/platform/store/journal/submission-journal.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const columns = ["account_id", "signature", "wire"];

function rowOf(name: string): SqlValue[] {
  return ["a_1", name, new Uint8Array(40).fill(name.length)];
}

function place(): string {
  return join(temporaryFolder(), "a.db");
}

function namesIn(path: string): unknown[] {
  return readJournal(path).flatMap(({ rows }) => rows.map(([, name]) => name));
}

describe("submission journal", () => {
  it("returns what was appended, with its columns, as a process leaves it", () => {
    const path = place();
    const journal = new SubmissionJournal(path, columns);
    journal.append([rowOf("one")]);
    expect(journal.turn()).toBe(true);
    journal.append([rowOf("two"), rowOf("three")]);
    expect(readJournal(path)).toEqual([
      { columns, rows: [rowOf("one")] },
      { columns, rows: [rowOf("two"), rowOf("three")] },
    ]);
    expect(statSync(`${path}-submissions-1`).mode & 0o777).toBe(0o600);
    journal.close();
  });

  it("accepts nothing after its file was removed", () => {
    const path = place();
    const journal = new SubmissionJournal(path, columns);
    journal.append([rowOf("one")]);
    rmSync(`${path}-submissions-1`);
    expect(() => journal.append([rowOf("two")])).toThrow(/-submissions-1 was removed/);
    journal.close();
  });

  it("turns only to an empty file, and clears the file that the database has", () => {
    const path = place();
    const journal = new SubmissionJournal(path, columns);
    journal.append([rowOf("one")]);
    journal.turn();
    journal.append([rowOf("two")]);
    expect(journal.turn()).toBe(false);
    journal.clearOther();
    expect(namesIn(path)).toEqual(["two"]);
    expect(journal.turn()).toBe(true);
    journal.append([rowOf("three")]);
    expect(namesIn(path)).toEqual(["three", "two"]);
    journal.clear();
    expect(readJournal(path)).toEqual([]);
    journal.close();
  });

  it("loses only the frame that was cut, wherever the file ends", () => {
    const path = place();
    const journal = new SubmissionJournal(path, columns);
    const file = `${path}-submissions-1`;
    const sizes = [statSync(file).size];
    for (const name of ["one", "two", "three"]) {
      journal.append([rowOf(name), rowOf(`${name}'`)]);
      sizes.push(statSync(file).size);
    }
    journal.close();
    const whole = readFileSync(file);
    for (let size = 0; size <= whole.length; size++) {
      writeFileSync(file, whole.subarray(0, size));
      const frames = sizes.filter((end) => end <= size).length - 1;
      const expected = ["one", "one'", "two", "two'", "three", "three'"];
      expect(namesIn(path)).toEqual(expected.slice(0, 2 * Math.max(0, frames)));
    }
  });

  it("stops at a byte that changed, and at foreign bytes", () => {
    const path = place();
    const journal = new SubmissionJournal(path, columns);
    const file = `${path}-submissions-1`;
    journal.append([rowOf("one")]);
    const firstEnd = statSync(file).size;
    journal.append([rowOf("two")]);
    journal.close();
    const whole = readFileSync(file);
    for (let at = firstEnd; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      writeFileSync(file, changed);
      expect(namesIn(path)).toEqual(["one"]);
    }
    writeFileSync(file, whole);
    appendFileSync(file, Buffer.alloc(64, 0xff));
    expect(namesIn(path)).toEqual(["one", "two"]);
    writeFileSync(file, "");
    expect(namesIn(path)).toEqual([]);
    const foreign = ["nothing\n", '{"version":2,"columns":[]}\n', '{"version":1}\n'];
    for (const text of [...foreign, '{"version":1,"columns":["a","b; DROP TABLE x"]}\n']) {
      writeFileSync(file, text);
      expect(() => readJournal(path)).toThrow(/expected a journal of format 1, got/);
    }
  });

  it("throws when no space is left, keeps the rows before, and continues when there is space", () => {
    const path = place();
    const journal = new SubmissionJournal(path, columns);
    journal.append([rowOf("one")]);
    const limit = statSync(`${path}-submissions-1`).size + 20;
    const setLimit = (bytes: number | "unlimited"): void => {
      execFileSync("prlimit", ["--pid", String(process.pid), `--fsize=${bytes}:unlimited`]);
    };
    setLimit(limit);
    try {
      expect(() => journal.append([rowOf("two")])).toThrow(
        /expected 71 bytes to be written, got 20/,
      );
      expect(statSync(`${path}-submissions-1`).size).toBe(limit - 20);
      expect(namesIn(path)).toEqual(["one"]);
    } finally {
      setLimit("unlimited");
    }
    journal.append([rowOf("three")]);
    expect(namesIn(path)).toEqual(["one", "three"]);
    journal.close();
  });

  it("starts empty: what an earlier process left is read before", () => {
    const path = place();
    const first = new SubmissionJournal(path, columns);
    first.append([rowOf("one")]);
    first.close();
    new SubmissionJournal(path, columns).close();
    expect(readJournal(path)).toEqual([]);
    forgetJournal(path);
    expect(() => truncateSync(`${path}-submissions-1`)).toThrow(/ENOENT/);
    expect(readJournal(path)).toEqual([]);
  });
});
