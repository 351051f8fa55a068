// Writes the man page of the compiled program: `npm run compile` runs it after the compiler.
//
// The page is dist/man/shredway.1; npm installs it with the package. SOURCE_DATE_EPOCH (seconds)
// replaces today's date in it.

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createFolders } from "../core/files.ts";
import { packageVersion } from "../core/version.ts";
import { allCommands } from "./commands.ts";
import { manPage } from "./manual/man-page.ts";

const folder = new URL("../../dist/man/", import.meta.url);
const seconds = process.env["SOURCE_DATE_EPOCH"];
const date = seconds === undefined ? new Date() : new Date(Number(seconds) * 1000);
const page = manPage(await allCommands(), {
  version: packageVersion(),
  date: date.toISOString().slice(0, 10),
});
createFolders(fileURLToPath(folder), 0o777);
writeFileSync(fileURLToPath(new URL("shredway.1", folder)), page);
