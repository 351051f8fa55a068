import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { prepareDataFolder } from "../../../src/platform/store/data-folder.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

it("says what is expected if the data folder is a file", () => {
  const file = join(temporaryFolder(), "data");
  writeFileSync(file, "");
  for (const path of [file, join(file, "below")]) {
    expect(() => prepareDataFolder(path)).toThrow(
      `${path}: not a folder; expected a folder, or a path that does not exist yet`,
    );
  }
});

it("names the user and the repair if the data folder is not writable", () => {
  expect(() => prepareDataFolder("/sys/shredway")).toThrow(
    /^\/sys\/shredway: permission denied for this user \(uid \d+\); expected the owner of the folder: run/,
  );
});
