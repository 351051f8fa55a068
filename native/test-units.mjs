// Joins the native tests of an area (the first word of the file's name) into one translation unit, which
// compiles three times faster than its files.
//
//   node native/test-units.mjs FOLDER       writes the units into FOLDER and prints their paths
//
// The names of two files of an area must differ, also those of an anonymous namespace.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const tests = fileURLToPath(new URL("test", import.meta.url));
const [folder] = process.argv.slice(2);
if (!folder) throw new Error("expected the folder of the units, got nothing");

/** Keeps the time of a file that has this text already, so that nothing compiles again. */
function writeIfChanged(path, text) {
  try {
    if (readFileSync(path, "utf8") === text) return;
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  writeFileSync(path, text);
}

mkdirSync(folder, { recursive: true });
const units = new Map();
for (const name of readdirSync(tests).toSorted()) {
  if (!name.endsWith(".cc")) continue;
  const unit = `${/^[a-z]+/.exec(name)[0]}.cc`;
  units.set(unit, `${units.get(unit) ?? ""}#include "${join(tests, name)}"\n`);
}
for (const [unit, text] of units) {
  writeIfChanged(join(folder, unit), text);
  console.log(join(folder, unit));
}
