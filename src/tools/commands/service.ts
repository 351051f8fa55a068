// `shredway service`: installs this program as a systemd service, or removes it.
//
// The plan and its steps are in src/tools/service/. `--dry-run` prints the plan as a shell script.

import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ShredwayError } from "../../core/errors.ts";
import { Host, serviceUser } from "../service/host.ts";
import {
  defaultConfig,
  installPlan,
  isInstalled,
  type Plan,
  uninstallPlan,
} from "../service/plan.ts";
import { runSteps, scriptOf } from "../service/steps.ts";
import { readAction } from "../terminal/actions.ts";
import { type Arguments, type Command, exitCodes, type OptionSpec } from "../terminal/command.ts";
import type { Terminal } from "../terminal/terminal.ts";

const actions = {
  install: {
    help: "create the user, the unit, the kernel settings, the folders and a configuration",
  },
  uninstall: { help: "stop the service and remove what install wrote" },
} as const;
type Action = keyof typeof actions;

const ofInstall = { actions: ["install"] } as const;
const options: Readonly<Record<string, OptionSpec>> = {
  config: {
    ...ofInstall,
    value: "FILE",
    help: `the service's configuration (default ${defaultConfig})`,
  },
  unprivileged: {
    ...ofInstall,
    help: "without the capabilities for clones: every shred is sent by socket",
  },
  now: { ...ofInstall, help: "also start the service, or restart it if its unit changed" },
  force: { help: "replace or remove files that were edited" },
  "dry-run": { help: "print every step with all contents, and change nothing" },
};

/** The command for one machine; tests use a machine in a temporary folder. */
export function serviceCommand(host: Host): Command {
  return {
    name: "service",
    summary: "install this program as a systemd service, or remove it",
    usage: [
      "service install [--config FILE] [--unprivileged] [--now] [--force] [--dry-run]",
      "service uninstall [--force] [--dry-run]",
    ],
    description: `
install creates the user ${serviceUser}, the systemd unit, the kernel settings, the folders of configuration and
data, and a first configuration if none exists; then it enables the unit. It never changes an existing
configuration. Call it again at any time: it repairs and updates what it wrote, and states what is
unchanged. A file that was edited is an error. uninstall stops the service and removes what install wrote,
except configuration, data and user. --dry-run prints all steps as a shell script, also without root.`,
    actions,
    options,
    examples: [
      "shredway service install --dry-run",
      "sudo shredway service install",
      "sudo shredway service install --config /srv/shredway/shredway.yaml --now",
      "sudo shredway service uninstall",
    ],
    run: (args, terminal) => run(host, args, terminal),
  };
}

function machine(): Host {
  return new Host({
    root: "/",
    uid: process.geteuid?.() ?? 0,
    node: process.execPath,
    packageFolder: resolve(fileURLToPath(new URL("../../../", import.meta.url))),
  });
}

export const service: Command = serviceCommand(machine());

async function run(host: Host, args: Arguments, terminal: Terminal): Promise<number> {
  const { action } = readAction<Action>(args, { name: "service", actions, options });
  const isDry = args.flag("dry-run");
  if (!isDry) checkMachine(host, action, terminal);
  const force = args.flag("force");
  if (action === "install") {
    const [unprivileged, now] = [args.flag("unprivileged"), args.flag("now")];
    const given = args.text("config");
    const config = given === undefined ? undefined : resolve(given);
    const plan = await installPlan(host, { config, unprivileged, now, force });
    await carryOut(plan, { action, isDry, host }, terminal);
    if (!isDry && !plan.isRunning) showNext(host, plan.config, terminal);
    return exitCodes.ok;
  }
  const plan = await uninstallPlan(host, force);
  if (plan.steps.length === 0) terminal.line("the service is not installed: nothing to remove");
  else await carryOut(plan, { action, isDry, host }, terminal);
  if (!isDry) showRemaining(plan.remaining, terminal);
  return exitCodes.ok;
}

/** Updates the files of an installed service to this version, whose unit permits clones. */
export async function updateUnit(terminal: Terminal): Promise<void> {
  const host = machine();
  if (!host.hasSystemd || !isInstalled(host)) return;
  const wanted = { config: undefined, unprivileged: false, now: false, force: false };
  const plan = await installPlan(host, wanted);
  await carryOut(plan, { action: "install", isDry: false, host }, terminal);
}

function checkMachine(host: Host, action: Action, terminal: Terminal): void {
  const command = `${terminal.self} service ${action}`;
  if (!host.hasSystemd) {
    throw new ShredwayError(
      "system",
      `/run/systemd/system does not exist, so systemd does not manage this machine; expected systemd 252 or newer. Other machines: run \`shredway start --config FILE\` under their service manager, or in a container`,
    );
  }
  if (host.uid !== 0) {
    throw new ShredwayError(
      "system",
      `this process runs as user ${host.uid}; expected root (0). Run: sudo ${command}; or print the steps: ${command} --dry-run`,
    );
  }
}

interface Call {
  readonly action: Action;
  readonly isDry: boolean;
  readonly host: Host;
}

async function carryOut(plan: Plan, { action, isDry, host }: Call, terminal: Terminal) {
  if (isDry) {
    terminal.line(`# Steps of shredway service ${action} on this machine. Nothing was changed.`);
    terminal.line(scriptOf(plan.steps));
    if (!host.hasSystemd) terminal.note("note: systemd does not manage this machine");
  } else {
    await runSteps(plan.steps, terminal);
  }
  for (const warning of plan.warnings) terminal.note(`warning: ${warning}`);
}

function showNext(host: Host, config: string, terminal: Terminal): void {
  const program = terminal.self === "shredway" ? "shredway" : `${host.node} ${host.program}`;
  const asUser = `sudo -u ${serviceUser} ${program}`;
  terminal.line();
  terminal.line("The service is installed and starts with the machine. Next:");
  terminal.line(`  edit    ${config}`);
  terminal.line(`  check   ${asUser} doctor --config ${config}`);
  terminal.line("  start   sudo systemctl start shredway");
}

function showRemaining(remaining: readonly string[], terminal: Terminal): void {
  if (remaining.length === 0) return;
  terminal.line();
  terminal.line(`Not removed: ${remaining.join(", ")}, and the user ${serviceUser}.`);
  terminal.line("Kernel settings keep their values until the machine starts again.");
  terminal.line("To delete them with all data and keys:");
  terminal.line(`  rm -r ${remaining.join(" ")} && userdel ${serviceUser}`);
}
