import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { prepareDataFolder } from "../../../src/platform/store/data-folder.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

it("names the key and the repair if the data folder is a file", () => {
  const file = join(temporaryFolder(), "data");
  writeFileSync(file, "");
  for (const path of [file, join(file, "below")]) {
    expect(() => prepareDataFolder(path)).toThrow(
      `data.directory: ${path} is a file, or a part of its path is one; expected a folder`,
    );
  }
});

it("names the key, the user and the repair if the data folder is not writable", () => {
  expect(() => prepareDataFolder("/sys/shredway")).toThrow(
    /^data.directory: \/sys\/shredway is not writable by the user \S+ \(E\w+\); .* chown -R /,
  );
});
