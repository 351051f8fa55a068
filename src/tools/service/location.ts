// Checks that the service can use a program or a configuration at its present location.
//
// Called before anything is changed. The unit hides some folders from the service (ProtectHome=,
// PrivateTmp=), whatever their mode is, and the service runs as its own user.

import { readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { quote, ShredwayError } from "../../core/errors.ts";
import { type Host, pathAndAncestors, serviceUser, type UserIds } from "./host.ts";

/** Folders that the unit hides from the service, with the setting that does so. */
const hiddenFolders: readonly (readonly [folder: string, setting: string])[] = [
  ["/home", "ProtectHome=yes"],
  ["/root", "ProtectHome=yes"],
  ["/run/user", "ProtectHome=yes"],
  ["/tmp", "PrivateTmp=yes"],
  ["/var/tmp", "PrivateTmp=yes"],
];

/** Names of systemd's syntax: spaces, quotes, "%" and "$" would need escapes. */
const plainPath = /^\/[\w./@:+-]*$/;

const readBit = 4;
const executeBit = 1;

const moveProgram =
  "install Shredway outside of home and temporary folders, for example in /opt/shredway or with npm install -g, and run the command of that installation";
const moveNode =
  "install Node.js for all users, for example as /usr/bin/node, and run this command with it";
const moveConfig = "choose a file such as /etc/shredway/shredway.yaml";

function hasAccess(stats: Stats, bit: number, ids: UserIds | undefined): boolean {
  const shift = stats.uid === ids?.uid ? 6 : stats.gid === ids?.gid ? 3 : 0;
  return ((stats.mode >> shift) & bit) !== 0;
}

/** The first entry that the service's user cannot use; undefined: all of them are usable. */
function unreadable(host: Host, path: string, ids: UserIds | undefined): string | undefined {
  const stats = host.stat(path);
  if (stats === undefined) return undefined;
  if (!stats.isDirectory()) return hasAccess(stats, readBit, ids) ? undefined : path;
  if (!hasAccess(stats, readBit, ids) || !hasAccess(stats, executeBit, ids)) return path;
  for (const name of readdirSync(host.at(path))) {
    const found = unreadable(host, join(path, name), ids);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The first folder above `path` that the service's user cannot enter. */
function closedFolder(host: Host, path: string, ids: UserIds | undefined): string | undefined {
  return pathAndAncestors(path)
    .slice(0, -1)
    .find((folder) => {
      const stats = host.stat(folder);
      return stats !== undefined && !hasAccess(stats, executeBit, ids);
    });
}

function refused(what: string, path: string, reason: string, remedy: string): ShredwayError {
  return new ShredwayError("value_invalid", `${what} ${quote(path)} ${reason}; ${remedy}`);
}

function checkPath(what: string, path: string, remedy: string): void {
  if (!plainPath.test(path)) {
    const expected =
      'contains a character with a meaning in unit files; expected letters, digits and "/._@:+-"';
    throw refused(what, path, expected, remedy);
  }
  if (path.includes("/_npx/"))
    throw refused(what, path, "is in npx's cache, which npm may delete", remedy);
  const hidden = hiddenFolders.find(([folder]) => path.startsWith(`${folder}/`));
  if (hidden) {
    const [folder, setting] = hidden;
    throw refused(what, path, `is below ${folder}, which the unit hides (${setting})`, remedy);
  }
}

function checkReadable(
  host: Host,
  { what, path, remedy }: { readonly what: string; readonly path: string; readonly remedy: string },
  ids: UserIds | undefined,
): void {
  const found = closedFolder(host, path, ids) ?? unreadable(host, path, ids);
  if (found === undefined) return;
  const mode = ((host.stat(found)?.mode ?? 0) & 0o7777).toString(8).padStart(4, "0");
  const reason = `cannot be read by the user ${serviceUser}: ${found} has mode ${mode}`;
  throw refused(what, path, reason, `chmod -R go+rX ${found}, or ${remedy}`);
}

/** Throws "value_invalid" unless the service can run the installed program, now and later. */
export function checkProgram(host: Host, ids: UserIds | undefined): void {
  const { node, packageFolder, program } = host;
  checkPath("the node program", node, moveNode);
  checkPath("the program", packageFolder, moveProgram);
  if (host.stat(program) === undefined) {
    throw refused("the program", program, "does not exist", "compile it: npm run compile");
  }
  checkReadable(host, { what: "the node program", path: node, remedy: moveNode }, ids);
  for (const name of ["package.json", "dist", "build/Release/shredway.node", "prebuilds"]) {
    const path = join(packageFolder, name);
    checkReadable(host, { what: "the program", path, remedy: moveProgram }, ids);
  }
}

/** Warns of programs that users other than root may replace. */
export function programWarnings(host: Host): string[] {
  return [host.node, host.packageFolder, host.program].flatMap((path) => {
    const stats = host.stat(path);
    const isOpen = stats !== undefined && (stats.uid !== 0 || (stats.mode & 0o022) !== 0);
    return isOpen
      ? [`${path} can be changed by users other than root, who can thus change the service`]
      : [];
  });
}

/** Throws "value_invalid" if the service would never see a configuration at `path`. */
export function checkConfigPath(path: string): void {
  checkPath("--config", path, moveConfig);
}

/** A warning if the existing configuration is not readable for the service. */
export function configWarnings(host: Host, path: string, ids: UserIds | undefined): string[] {
  const stats = host.stat(path);
  if (stats === undefined) return [];
  const closed = closedFolder(host, path, ids);
  if (closed === undefined && hasAccess(stats, readBit, ids)) return [];
  const [entry, mode] = closed === undefined ? [path, "0640"] : [closed, "0750"];
  const remedy = `chgrp ${serviceUser} ${entry} && chmod ${mode} ${entry}`;
  return [`${path} cannot be read by the user ${serviceUser}; run: ${remedy}`];
}
