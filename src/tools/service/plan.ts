// Plans of `shredway service install` and `uninstall`: the steps, in their order, for this machine.
//
// A plan only reads. It throws before the first change if the installation could not work, or if a
// file of the operator is in the way.

import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { ShredwayError } from "../../core/errors.ts";
import { type Host, serviceUser, type UserIds } from "./host.ts";
import { checkConfigPath, checkProgram, configWarnings, programWarnings } from "./location.ts";
import {
  commandStep,
  folderStep,
  removeFolderStep,
  removeStep,
  type Step,
  writeStep,
} from "./steps.ts";
import { stateOf, templateText, type WrittenFile, writtenFile } from "./written-file.ts";

export const defaultConfig = "/etc/shredway/shredway.yaml";
const dataFolder = "/var/lib/shredway";
const unitName = "shredway.service";
const unitPath = `/etc/systemd/system/${unitName}`;
const dropInFolder = `${unitPath}.d`;
const unprivilegedPath = `${dropInFolder}/unprivileged.conf`;
const sysctlPath = "/etc/sysctl.d/60-shredway.conf";
const sysusersPath = "/etc/sysusers.d/shredway.conf";

const ofRoot = { user: "root", group: "root" } as const;
const ofGroup = { user: "root", group: serviceUser } as const;
const ofService = { user: serviceUser, group: serviceUser } as const;

export interface Plan {
  readonly steps: readonly Step[];
  readonly warnings: readonly string[];
}

interface InstallPlan extends Plan {
  readonly config: string;
  readonly isRunning: boolean;
}

interface InstallOptions {
  /** Undefined: that of the installed unit, or the default. */
  readonly config: string | undefined;
  /** Install the drop-in that takes the capabilities for clones away. */
  readonly unprivileged: boolean;
  readonly now: boolean;
  readonly force: boolean;
}

/** The example unit with the paths of this installation. */
function unitText(host: Host, config: string): string {
  return templateText("shredway.service")
    .replaceAll("/usr/bin/node", host.node)
    .replaceAll("/etc/shredway/shredway.yaml", config)
    .replaceAll("/opt/shredway", host.packageFolder);
}

const dropInRemedy = "put changes into a drop-in with systemctl edit shredway";

function unitFile(host: Host, config: string): WrittenFile {
  return writtenFile(unitPath, unitText(host, config), dropInRemedy);
}

function unprivilegedFile(): WrittenFile {
  return writtenFile(
    unprivilegedPath,
    templateText("shredway.service.d/unprivileged.conf"),
    dropInRemedy,
  );
}

function sysctlFile(): WrittenFile {
  const remedy = "put other values into a file of /etc/sysctl.d that sorts after this one";
  return writtenFile(sysctlPath, templateText("shredway.sysctl.conf"), remedy);
}

function sysusersFile(): WrittenFile {
  const remedy = `change the user with usermod ${serviceUser}`;
  return writtenFile(sysusersPath, templateText("shredway.sysusers.conf"), remedy);
}

/** Throws "value_invalid" that lists all files that are not ours. */
function refuseForeign(host: Host, files: readonly WrittenFile[], verb: string): void {
  const lines = files.flatMap((file) => {
    const state = stateOf(host, file);
    return state.kind === "foreign" ? [`${file.path} ${state.reason}; ${file.remedy}`] : [];
  });
  if (lines.length === 0) return;
  const remedy = `move your changes there, then ${verb} the listed files with --force`;
  throw new ShredwayError("value_invalid", `${lines.join("\n")}\nNothing was changed: ${remedy}`);
}

interface UnitState {
  /** systemd knows the unit. */
  readonly loaded: boolean;
  readonly needsReload: boolean;
  readonly enabled: boolean;
  readonly active: boolean;
}

/** The unit as systemd sees it. Without systemd: an unknown unit. */
async function unitState(host: Host): Promise<UnitState> {
  const names = ["LoadState", "NeedDaemonReload", "UnitFileState", "ActiveState"];
  const words = ["systemctl", "show", `--property=${names.join(",")}`, unitName];
  const { stdout } = host.hasSystemd ? await host.run(words) : { stdout: "" };
  const is = (name: string, value: string) => stdout.split("\n").includes(`${name}=${value}`);
  return {
    loaded: stdout.includes("LoadState=") && !is("LoadState", "not-found"),
    needsReload: is("NeedDaemonReload", "yes"),
    enabled: is("UnitFileState", "enabled"),
    active: ["active", "activating", "reloading"].some((value) => is("ActiveState", value)),
  };
}

/** Whether the kernel already has every value of the file; values that it lacks do not count. */
function isApplied(host: Host, sysctl: string): boolean {
  return [...sysctl.matchAll(/^([\w.]+) = (\S+)$/gm)].every(([, key = "", value]) => {
    const present = host.read(`/proc/sys/${key.replaceAll(".", "/")}`);
    return present === undefined || present.trim() === value;
  });
}

function fileStep(host: Host, file: WrittenFile): Step {
  const isSame = stateOf(host, file).kind === "unchanged";
  return writeStep(
    host,
    { ...file, access: { mode: 0o644, ...ofRoot } },
    isSame ? file.path : undefined,
  );
}

function userSteps(host: Host, ids: UserIds | undefined): Step[] {
  const file = fileStep(host, sysusersFile());
  const isDone = file.unchanged !== undefined && ids !== undefined;
  const command = commandStep(host, ["systemd-sysusers", sysusersPath], {
    unchanged: isDone ? `user ${serviceUser}` : undefined,
  });
  return [file, command];
}

/** Folders, and a configuration if none exists. An existing one is never changed. */
function configSteps(host: Host, config: string, ids: UserIds | undefined): Step[] {
  const folder = dirname(config);
  const isOwn = config === defaultConfig || host.stat(folder) === undefined;
  const folders = isOwn ? [folder, join(folder, "secrets")] : [];
  const exists = host.stat(config) !== undefined;
  return [
    folderStep(host, dataFolder, { mode: 0o700, ...ofService }, ids),
    ...folders.map((path) => folderStep(host, path, { mode: 0o750, ...ofGroup }, ids)),
    writeStep(
      host,
      { path: config, text: templateText("first.yaml"), access: { mode: 0o640, ...ofGroup } },
      exists ? `${config} (your configuration)` : undefined,
    ),
  ];
}

function sysctlSteps(host: Host): Step[] {
  const file = sysctlFile();
  const write = fileStep(host, file);
  const isDone = write.unchanged !== undefined && isApplied(host, file.text);
  const apply = commandStep(host, ["systemctl", "restart", "systemd-sysctl.service"], {
    unchanged: isDone ? "kernel settings" : undefined,
    warning: "the kernel settings apply after the next start of the machine",
  });
  return [write, apply];
}

/** The unit, its drop-in, and what systemd has to do with them. */
function unitSteps(
  host: Host,
  state: UnitState,
  { units, now }: { readonly units: readonly WrittenFile[]; readonly now: boolean },
): Step[] {
  const writes = units.map((file) => fileStep(host, file));
  const isChanged =
    writes.some(({ unchanged }) => unchanged === undefined) || state.needsReload || !state.loaded;
  const startWords = state.active && isChanged ? ["restart"] : ["start"];
  const start = commandStep(host, ["systemctl", ...startWords, unitName], {
    unchanged:
      state.active && !isChanged
        ? `${unitName} is running (after an update: systemctl restart shredway)`
        : undefined,
    hint: "journalctl -u shredway -n 50",
  });
  return [
    ...writes,
    commandStep(host, ["systemctl", "daemon-reload"], {
      unchanged: isChanged ? undefined : "systemd has read the unit",
    }),
    commandStep(host, ["systemctl", "enable", unitName], {
      unchanged: state.enabled ? `${unitName} is enabled` : undefined,
    }),
    ...(now ? [start] : []),
  ];
}

export async function installPlan(host: Host, options: InstallOptions): Promise<InstallPlan> {
  const { unprivileged, now, force } = options;
  const config = options.config ?? installedConfig(host);
  checkConfigPath(config);
  const ids = await host.serviceIds();
  checkProgram(host, ids);
  // The drop-in stays until `uninstall`: a later call without --unprivileged adds no privileges.
  const hasDropIn = unprivileged || host.linkStat(unprivilegedPath) !== undefined;
  const units = [unitFile(host, config), ...(hasDropIn ? [unprivilegedFile()] : [])];
  if (!force) refuseForeign(host, [sysusersFile(), sysctlFile(), ...units], "replace");
  const state = await unitState(host);
  const ofUnits = unitSteps(host, state, { units, now });
  const isOutdated = state.active && !now && ofUnits.some(({ unchanged }) => !unchanged);
  return {
    config,
    isRunning: state.active || now,
    steps: [
      ...userSteps(host, ids),
      ...configSteps(host, config, ids),
      ...sysctlSteps(host),
      ...ofUnits,
    ],
    warnings: [
      ...programWarnings(host),
      ...configWarnings(host, config, ids),
      ...(isOutdated
        ? ["the running service uses the former unit; run: systemctl restart shredway"]
        : []),
    ],
  };
}

/** Whether the unit file exists, written by this program or by hand. */
export function isInstalled(host: Host): boolean {
  return host.linkStat(unitPath) !== undefined;
}

/** The configuration that the installed unit names, or the default. */
function installedConfig(host: Host): string {
  const found = /^ExecStart=.* --config (\S+)$/m.exec(host.read(unitPath) ?? "");
  return found?.[1] ?? defaultConfig;
}

interface UninstallPlan extends Plan {
  /** Existing folders and files of the operator, which stay. */
  readonly remaining: readonly string[];
}

function removeSteps(host: Host, files: readonly WrittenFile[]): Step[] {
  return files
    .filter(({ path }) => host.linkStat(path) !== undefined)
    .map(({ path }) => removeStep(host, path));
}

export async function uninstallPlan(host: Host, force: boolean): Promise<UninstallPlan> {
  const config = installedConfig(host);
  const units = [unitFile(host, config), unprivilegedFile()];
  const others = [sysctlFile(), sysusersFile()];
  if (!force) refuseForeign(host, [...units, ...others], "remove");
  const state = await unitState(host);
  const removed = removeSteps(host, units);
  const dropIns = host.stat(dropInFolder) ? readdirSync(host.at(dropInFolder)) : [];
  const isEmpty = dropIns.length === 1 && dropIns[0] === "unprivileged.conf";
  const remaining = [
    config === defaultConfig ? dirname(config) : config,
    dataFolder,
    ...(dropIns.length > 0 && !isEmpty ? [dropInFolder] : []),
  ];
  return {
    steps: [
      ...(state.active || state.enabled || removed.length > 0
        ? [commandStep(host, ["systemctl", "disable", "--now", unitName], {})]
        : []),
      ...removed,
      ...(isEmpty ? [removeFolderStep(host, dropInFolder)] : []),
      ...(removed.length > 0 || state.needsReload
        ? [commandStep(host, ["systemctl", "daemon-reload"], {})]
        : []),
      ...removeSteps(host, others),
    ],
    warnings: [],
    remaining: remaining.filter((path) => host.stat(path) !== undefined),
  };
}
