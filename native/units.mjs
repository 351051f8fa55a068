// Joins the sources of a part of the native code into translation units, which compile faster than their
// files: the 21 files of the relay in a quarter of the processor time.
//
//   node native/units.mjs PART FOLDER       writes the units into FOLDER and prints their paths
//
//   core      one unit for each folder
//   addon     one unit
//   test      one unit for each area (the first word of the file's name)
//   bench     likewise
//
// The names of two files of a unit must differ, also those of an anonymous namespace.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { coreFolders } from "./core-folders.mjs";

const native = fileURLToPath(new URL(".", import.meta.url));
const areaOf = (name) => /^[a-z]+/.exec(name)[0];

/** The folders of each part, relative to `native`, which is an include path of every target. */
const parts = {
  core: { folders: coreFolders, unitOf: (_name, folder) => folder },
  addon: { folders: ["addon"], unitOf: (_name, folder) => folder },
  test: { folders: ["test"], unitOf: areaOf },
  bench: { folders: ["../bench/native"], unitOf: areaOf },
};

/** Keeps the time of a file that has this text already, so that nothing compiles again. */
function writeIfChanged(path, text) {
  try {
    if (readFileSync(path, "utf8") === text) return;
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  writeFileSync(path, text);
}

const [name, output] = process.argv.slice(2);
const part = parts[name];
if (!part || !output) {
  throw new Error(
    `expected one of ${Object.keys(parts).join(", ")}, then a folder; got "${name ?? ""}", "${output ?? ""}"`,
  );
}
const units = new Map();
for (const folder of part.folders) {
  for (const file of readdirSync(join(native, folder)).toSorted()) {
    if (!file.endsWith(".cc")) continue;
    const unit = `${part.unitOf(file, folder)}.cc`;
    units.set(unit, `${units.get(unit) ?? ""}#include "${folder}/${file}"\n`);
  }
}
mkdirSync(output, { recursive: true });
for (const [unit, text] of units) {
  writeIfChanged(join(output, unit), text);
  console.log(join(output, unit));
}
