import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ensureKeyFile } from "../../src/sandbox/key-files.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

it("names the option for another folder if this one cannot be written", () => {
  const folder = temporaryFolder();
  const file = join(folder, "file");
  writeFileSync(file, "");
  for (const data of ["/sys/shredway", join(file, "data")]) {
    expect(() => ensureKeyFile(data, "identity")).toThrow(
      expect.objectContaining({
        reason: "config_invalid",
        message: expect.stringMatching(
          `^data folder ${data}: E\\w+: .*; expected a folder that this user can write: choose one with --data`,
        ),
      }),
    );
  }
});

it("keeps the key of an earlier start", () => {
  const folder = join(temporaryFolder(), "data");
  const made = ensureKeyFile(folder, "identity");
  expect(ensureKeyFile(folder, "identity")).toEqual(made);
});
