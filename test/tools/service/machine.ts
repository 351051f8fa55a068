// A machine in a temporary folder for `shredway service`: real files, and stand-ins for the commands
// of systemd, found in PATH. The stand-in of systemctl keeps the unit's state in files.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { serviceCommand } from "../../../src/tools/commands/service.ts";
import { Host } from "../../../src/tools/service/host.ts";
import { CommandRun } from "../../support/processes/command-run.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** Ids of the service's user on the machine; no real user has them. */
export const ids = { uid: 64_123, gid: 64_124 };

const unit = "$ROOT/etc/systemd/system/shredway.service";

/** The state of a unit is the presence of the files enabled, active and loaded. */
const systemctl = `
case "$*" in
show*)
  if [ -e loaded ] || [ -e ${unit} ]; then echo LoadState=loaded; else echo LoadState=not-found; fi
  if [ -e loaded ] && ! cmp -s loaded ${unit}; then echo NeedDaemonReload=yes; else echo NeedDaemonReload=no; fi
  if [ -e enabled ]; then echo UnitFileState=enabled; else echo UnitFileState=disabled; fi
  if [ -e active ]; then echo ActiveState=active; else echo ActiveState=inactive; fi ;;
daemon-reload) rm -f loaded; [ ! -e ${unit} ] || cp ${unit} loaded ;;
"enable shredway.service") touch enabled ;;
"disable --now shredway.service") rm -f enabled active ;;
"start shredway.service" | "restart shredway.service") touch active ;;
"restart systemd-sysctl.service")
  sed -n 's/^\\([a-z_.]*\\) = /\\1 /p' $ROOT/etc/sysctl.d/60-shredway.conf | while read -r key value; do
    echo "$value" > "$ROOT/proc/sys/$(echo "$key" | tr . /)"
  done ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac`;

const getent = `
[ -e user ] || exit 2
if [ "$1" = passwd ]; then echo "shredway:x:${ids.uid}:${ids.gid}::/:"; else echo "shredway:x:${ids.gid}:"; fi`;

/** install(1) below the machine's root, with the ids of its users. */
const install = `
for word; do
  shift
  case "$word" in
  shredway) [ "$last" = -o ] && word=${ids.uid} || word=${ids.gid} ;;
  /dev/stdin) ;;
  /*) word="$ROOT$word" ;;
  esac
  last="$word"
  set -- "$@" "$word"
done
exec /usr/bin/install "$@"`;

interface MachineOptions {
  readonly uid?: number;
  readonly node?: string;
  readonly packageFolder?: string;
  readonly hasSystemd?: boolean;
}

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Message of the error that ended the command. */
  readonly error: string;
}

export class Machine {
  readonly root = temporaryFolder();
  readonly #state = temporaryFolder();
  readonly #host: Host;

  constructor(options: MachineOptions = {}) {
    const { uid = 0, node = "/usr/bin/node", packageFolder = "/opt/shredway" } = options;
    this.#host = new Host({ root: this.root, uid, node, packageFolder });
    chmodSync(this.root, 0o755);
    if (options.hasSystemd !== false) this.write("/run/systemd/system/x", "");
    this.write(node, "", 0o755);
    this.write(`${packageFolder}/package.json`, "{}");
    this.write(`${packageFolder}/dist/tools/shredway.js`, "");
    for (const key of ["net/core/rmem_max", "net/core/wmem_max", "vm/swappiness"])
      this.write(`/proc/sys/${key}`, "1\n");
    for (const key of ["max_backlog", "budget", "budget_usecs"])
      this.write(`/proc/sys/net/core/netdev_${key}`, "1\n");
    this.write("/proc/sys/net/core/somaxconn", "1\n");
    this.#command("systemctl", systemctl);
    this.#command("systemd-sysusers", "touch user");
    this.#command("getent", getent);
    this.#command("install", install);
  }

  /** Runs `shredway service …` on this machine. */
  async service(...words: readonly string[]): Promise<Result> {
    const path = process.env["PATH"];
    process.env["PATH"] = `${this.#state}/bin:${path}`;
    try {
      const run = new CommandRun(serviceCommand(this.#host), words);
      let error = "";
      const code = await run.code.catch((thrown: unknown) => {
        error = thrown instanceof Error ? thrown.message : String(thrown);
        return 1;
      });
      return { code, stdout: run.stdout, stderr: run.stderr, error };
    } finally {
      process.env["PATH"] = path;
    }
  }

  /** Runs a shell script with the machine's commands. */
  shell(script: string): void {
    const env = { ...process.env, PATH: `${this.#state}/bin:${process.env["PATH"]}` };
    execFileSync("sh", ["-eu"], { input: script, env, stdio: ["pipe", "ignore", "inherit"] });
  }

  /** Commands that ran since the last call, without those that only read. */
  commands(): string[] {
    const path = join(this.#state, "log");
    const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    rmSync(path, { force: true });
    return lines.filter((line) => !/^(getent|install|systemctl show)/.test(line));
  }

  /** Lets each command that begins with these words fail; "" ends this. */
  failing(words: string): void {
    writeFileSync(join(this.#state, "failing"), words);
  }

  write(path: string, text: string, mode = 0o644): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
    chmodSync(join(this.root, path), mode);
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), "utf8");
  }

  exists(path: string): boolean {
    return existsSync(join(this.root, path));
  }

  /** Every entry with type, mode, owner and content. */
  snapshot(folder = "/"): Record<string, string> {
    return Object.fromEntries(this.#entries(folder));
  }

  #entries(folder: string): [string, string][] {
    return readdirSync(join(this.root, folder)).flatMap((name): [string, string][] => {
      const path = join(folder, name);
      const stats = lstatSync(join(this.root, path));
      const access = `${stats.mode.toString(8)} ${stats.uid}:${stats.gid}`;
      if (stats.isDirectory()) return [[path, access], ...this.#entries(path)];
      const content = stats.isSymbolicLink()
        ? readlinkSync(join(this.root, path))
        : this.read(path);
      return [[path, `${access} ${content}`]];
    });
  }

  #command(name: string, body: string): void {
    const path = join(this.#state, "bin", name);
    mkdirSync(dirname(path), { recursive: true });
    const text = `#!/bin/sh
cd ${this.#state}
ROOT=${this.root}
echo "${name} $*" >> log
words=$(cat failing 2>/dev/null)
case "${name} $*" in "\${words:-nothing fails}"*) echo "failed on request" >&2; exit 1 ;; esac
${body}
`;
    writeFileSync(path, text);
    chmodSync(path, 0o755);
  }
}
