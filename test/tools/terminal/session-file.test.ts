import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SessionFile } from "../../../src/tools/terminal/session-file.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

describe("SessionFile", () => {
  it("writes in order, and may be closed twice", () => {
    const path = join(temporaryFolder(), "a.csv");
    const file = new SessionFile(path);
    for (const text of ["one,", "", "two"]) file.write(Buffer.from(text));
    file.close();
    file.close();
    expect(file.failure).toBeNull();
    expect(readFileSync(path, "utf8")).toBe("one,two");
  });

  it("keeps the first failed write instead of throwing it", () => {
    const file = new SessionFile("/dev/full");
    file.write(Buffer.from("one"));
    const { failure } = file;
    expect(failure?.message).toBe("cannot write /dev/full: ENOSPC: no space left on device, write");
    file.write(Buffer.from("two"));
    file.close();
    expect(file.failure).toBe(failure);
  });

  it("throws if the file cannot be opened", () => {
    expect(() => new SessionFile(temporaryFolder())).toThrow(/^cannot write .*: EISDIR/);
  });
});
