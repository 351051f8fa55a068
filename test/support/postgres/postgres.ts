// A PostgreSQL server for one test: created in a temporary folder, reached by a socket file there,
// removed at the end. Debian's package `postgresql` contains the programs.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import pg from "pg";
import { systemClock } from "../../../src/core/clock.ts";
import { isFullRun } from "../vitest/test-scope.ts";

const packageFolder = "/usr/lib/postgresql";
/** Name of the server's own role; tests create less privileged ones. */
export const superuser = "shredway";
/** Reached only by failures. */
const promoteSeconds = 100;

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function findPrograms(): string | null {
  const versions = existsSync(packageFolder) ? readdirSync(packageFolder) : [];
  const packaged = versions
    .toSorted((a, b) => Number(b) - Number(a))
    .map((version) => join(packageFolder, version, "bin"));
  const folders = [...packaged, ...(process.env["PATH"] ?? "").split(delimiter)];
  return (
    folders.find((folder) =>
      ["initdb", "postgres"].every((name) => isProgram(join(folder, name))),
    ) ?? null
  );
}

/** Folder of initdb and postgres; null: not installed, and tests that need them are skipped. */
export const postgresPrograms = isFullRun ? findPrograms() : null;

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** The server refuses to run as root. */
function unprivilegedUser(): User | null {
  if (process.getuid?.() !== 0) return null;
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const wanted of ["postgres", "nobody"]) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${wanted}:`))?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("expected a user postgres or nobody, found neither");
}

/** Runs a program of PostgreSQL or of the system as the server's user. */
function runAs(user: User | null, program: string, words: readonly string[], cwd: string): void {
  const ran = spawnSync(program, words, { encoding: "utf8", cwd, ...user });
  if (ran.status !== 0) throw new Error(`${program} failed:\n${ran.stdout}${ran.stderr}`);
}

function ownedFolder(user: User | null): string {
  const folder = mkdtempSync(join(tmpdir(), "shredway-pg-"));
  if (user) chownSync(folder, user.uid, user.gid);
  chmodSync(folder, 0o700);
  return folder;
}

function initialize(user: User | null, data: string, further: readonly string[] = []): void {
  const words = ["-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  const program = join(postgresPrograms ?? "", "initdb");
  runAs(user, program, ["-D", data, ...words, ...further], dirname(data));
}

/** Creates a folder with `data` in it, which servers copy. */
export function makeTemplate(): string {
  const user = unprivilegedUser();
  const folder = ownedFolder(user);
  initialize(user, join(folder, "data"));
  return folder;
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return []; // it has ended
  }
}

export interface PostgresOptions {
  /** Lines of its configuration. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of pg_hba.conf; default: trust for all. */
  readonly access?: readonly string[];
  /** Additional files next to its data, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Prefix of the server's command, for a network namespace. Requires root. */
  readonly command?: readonly string[];
  /** A folder for its data (`data`) or its write-ahead log (`pg_wal`), on a disk of its own. */
  readonly disk?: { readonly folder: string; readonly holds: "data" | "pg_wal" };
  /** Creates a replica of that server. */
  readonly primary?: PostgresServer;
}

export class PostgresServer {
  readonly folder: string;
  readonly #user: User | null;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #command: readonly string[];
  readonly #data: string;
  #server: ChildProcess | undefined;
  readonly #databases = new Map<string, Promise<void>>();
  /** Names of databases that `recycle` has left. */
  readonly #unused: string[] = [];

  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  private constructor({
    settings = {},
    access,
    files = {},
    command = [],
    disk,
    primary,
  }: PostgresOptions) {
    this.#user = unprivilegedUser();
    this.folder = ownedFolder(this.#user);
    this.#settings = settings;
    this.#command = command;
    this.#data = join(disk?.holds === "data" ? disk.folder : this.folder, "data");
    if (disk) {
      if (this.#user) chownSync(disk.folder, this.#user.uid, this.#user.gid);
      chmodSync(disk.folder, 0o700);
    }
    if (primary) this.#copy(primary);
    else this.#initialize(disk);
    for (const [name, text] of Object.entries(files)) this.place(name, text);
    if (access) this.place("data/pg_hba.conf", `${access.join("\n")}\n`);
  }

  #initialize(disk: PostgresOptions["disk"]): void {
    const template = process.env["SHREDWAY_TEST_POSTGRES_TEMPLATE"];
    if (template && !disk) {
      runAs(this.#user, "cp", ["-a", join(template, "data"), this.#data], this.folder);
      return;
    }
    const log = join(disk?.holds === "pg_wal" ? disk.folder : this.folder, "pg_wal");
    // Only one of the two disks fills up. The log's files are small, so that it fills soon.
    initialize(this.#user, this.#data, disk ? ["-X", log, "--wal-segsize=1"] : []);
  }

  #copy(primary: PostgresServer): void {
    const from = `host=${primary.folder} port=${primary.#settings["port"] ?? "5432"} user=${superuser}`;
    const words = ["-D", this.#data, "-d", from, "-R", "-X", "stream", "--no-sync"];
    this.#run("pg_basebackup", [...words, "--checkpoint=fast"]);
  }

  /** Runs a program of PostgreSQL in its folder. */
  #run(program: string, words: readonly string[]): void {
    runAs(this.#user, join(postgresPrograms ?? "", program), words, this.folder);
  }

  /** Writes a file that the server reads, with access for its owner only. */
  place(name: string, text: string): string {
    const path = join(this.folder, name);
    const written = spawnSync("sh", ["-c", 'umask 077; cat > "$1"', "sh", path], {
      input: text,
      ...this.#user,
    });
    if (written.status !== 0) throw new Error(`expected to write ${path}`);
    return path;
  }

  /** URL of the named database, at the socket file, as `user`. */
  url(database = "postgres", user = superuser): string {
    const host = encodeURIComponent(this.folder);
    const port = this.#settings["port"] ?? "5432";
    return `postgres:///${database}?host=${host}&port=${port}&user=${user}`;
  }

  /** Starts the server, also after stop and kill. Settles when it accepts connections. */
  async start(): Promise<void> {
    const settings = {
      listen_addresses: "",
      unix_socket_directories: this.folder,
      // No durability is needed, because a kill does not affect the kernel's page cache.
      fsync: "off",
      shared_buffers: "32MB",
      autovacuum: "off",
      ...this.#settings,
    };
    const words = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const [program = "", ...before] = this.#programAs();
    const server = spawn(program, [...before, "-D", this.#data, ...words], {
      cwd: this.folder,
      stdio: ["ignore", "ignore", "pipe"],
      ...(this.#command.length === 0 && this.#user),
    });
    this.#server = server;
    let said = "";
    server.stderr?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-10_000);
    });
    for (;;) {
      if (server.exitCode !== null || server.signalCode !== null)
        throw new Error(`the server ended:\n${said}`);
      try {
        await this.run("SELECT 1");
        return;
      } catch {
        await systemClock.sleep(20);
      }
    }
  }

  /** The start command: entering a namespace requires root, which it drops afterwards. */
  #programAs(): string[] {
    const program = join(postgresPrograms ?? "", "postgres");
    if (this.#command.length === 0 || !this.#user) return [...this.#command, program];
    const { uid, gid } = this.#user;
    const as = ["setpriv", "--reuid", `${uid}`, "--regid", `${gid}`, "--clear-groups"];
    return [...this.#command, ...as, program];
  }

  /** Rows of one statement, run as the server's own role. */
  async run(sql: string, database = "postgres"): Promise<unknown[][]> {
    const client = new pg.Client({ connectionString: this.url(database) });
    client.on("error", () => {});
    try {
      await client.connect();
      return (await client.query({ text: sql, rowMode: "array" })).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  /**
   * Reloads the configuration. Settles when every session applies it to its next statement:
   * `pg_reload_conf` only sends a signal, which the server handles later. New sessions start with
   * the configuration that the server has read after it has passed the signal on to all others.
   */
  async reload(): Promise<void> {
    const loadTime = async (): Promise<unknown> => {
      const [[time] = []] = await this.run("SELECT extract(epoch FROM pg_conf_load_time())");
      return time;
    };
    const before = await loadTime();
    await this.run("SELECT pg_reload_conf()");
    while ((await loadTime()) === before) await systemClock.sleep(5);
  }

  /** Promotes a replica, and waits until it accepts changes. */
  async promote(): Promise<void> {
    const [[isPromoted] = []] = await this.run(`SELECT pg_promote(true, ${promoteSeconds})`);
    if (isPromoted !== true) {
      throw new Error(
        `expected the replica to accept writes ${promoteSeconds} s after its promotion, but it is read-only`,
      );
    }
  }

  /** Creates the database of a URL, once; concurrent callers wait for the same creation. */
  ensureDatabase(url: string): Promise<void> {
    const name = new URL(url).pathname.slice(1);
    const making = this.#databases.get(name) ?? this.#make(name);
    this.#databases.set(name, making);
    return making;
  }

  async #make(name: string): Promise<void> {
    const known = `SELECT 1 FROM pg_database WHERE datname = '${name}'`;
    if ((await this.run(known)).length > 0 || (await this.#reuse(name))) return;
    await this.run(`CREATE DATABASE ${name}`);
  }

  /** Empties and renames a database that is not used any more. False: none is left, or a session is in it. */
  async #reuse(name: string): Promise<boolean> {
    const unused = this.#unused.pop();
    if (unused === undefined) return false;
    try {
      await this.run(
        "DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION pg_database_owner",
        unused,
      );
      await this.run(`ALTER DATABASE ${unused} RENAME TO ${name}`);
      return true;
    } catch {
      return false;
    }
  }

  /** Removes the databases of `ensureDatabase`, in which no session may be: later ones take their place. */
  recycle(): void {
    this.#unused.push(...this.#databases.keys());
    this.#databases.clear();
  }

  /** The server and each of its processes. */
  get #processes(): number[] {
    const pid = this.#server?.pid;
    return pid === undefined ? [] : [pid, ...childrenOf(pid)];
  }

  #signal(signal: NodeJS.Signals): void {
    for (const pid of this.#processes) {
      try {
        process.kill(pid, signal);
      } catch {
        // The process has already ended.
      }
    }
  }

  /** Stops all processes until `resume`. */
  pause(): void {
    this.#signal("SIGSTOP");
  }

  resume(): void {
    this.#signal("SIGCONT");
  }

  /** Copies a database into a new one, through a file, as described in docs/postgres.md. */
  copyByDump(from: string, to: string): void {
    const at = ["-h", this.folder, "-U", superuser];
    const file = join(this.folder, `${from}.dump`);
    this.#run("pg_dump", [...at, "--format=custom", `--file=${file}`, from]);
    this.#run("createdb", [...at, "--encoding=UTF8", "--template=template0", to]);
    this.#run("pg_restore", [...at, `--dbname=${to}`, "--exit-on-error", file]);
  }

  /** Shuts down, without waiting for its clients. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "close");
    server.kill("SIGINT");
    await ended;
  }

  /** Kills all its processes with kill -9. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "close"); // the end of the output, which its processes share
    server.kill("SIGSTOP"); // so that it starts no more of them
    this.#signal("SIGKILL");
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
