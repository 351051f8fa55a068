// A PostgreSQL server of a test's own: made in a temporary folder, reached by a socket file there,
// removed at the end. Debian's package `postgresql` brings the programs.

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

const packageFolder = "/usr/lib/postgresql";
/** Of the server's own role; tests make weaker ones. */
export const superuser = "shredway";
/** Only a failure ever takes so long. */
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
export const postgresPrograms = findPrograms();

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
  throw new Error("expected a user postgres or nobody, got neither");
}

/** Runs one of PostgreSQL's programs, or one of the system's, as the user that the server has. */
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

/** A folder with `data` in it that servers copy instead of making their own. */
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
  /** Lines of pg_hba.conf instead of trust for everybody. */
  readonly access?: readonly string[];
  /** Further files beside its data, by their names. */
  readonly files?: Readonly<Record<string, string>>;
  /** What to put before the server's command: of a network namespace. Takes root. */
  readonly command?: readonly string[];
  /** A folder for its data (`data`) or its log of changes (`pg_wal`): of a disk of its own. */
  readonly disk?: { readonly folder: string; readonly holds: "data" | "pg_wal" };
  /** Makes a replica of that server. */
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
    // One of the two alone fills up; and the log's files are small, so that it does so soon.
    initialize(this.#user, this.#data, disk ? ["-X", log, "--wal-segsize=1"] : []);
  }

  #copy(primary: PostgresServer): void {
    const from = `host=${primary.folder} port=${primary.#settings["port"] ?? "5432"} user=${superuser}`;
    const words = ["-D", this.#data, "-d", from, "-R", "-X", "stream", "--no-sync"];
    this.#run("pg_basebackup", [...words, "--checkpoint=fast"]);
  }

  /** Runs one of PostgreSQL's programs in its folder. */
  #run(program: string, words: readonly string[]): void {
    runAs(this.#user, join(postgresPrograms ?? "", program), words, this.folder);
  }

  /** Writes a file that the server reads; its owner's only. */
  place(name: string, text: string): string {
    const path = join(this.folder, name);
    const written = spawnSync("sh", ["-c", 'umask 077; cat > "$1"', "sh", path], {
      input: text,
      ...this.#user,
    });
    if (written.status !== 0) throw new Error(`expected to write ${path}`);
    return path;
  }

  /** Of the database of that name: at the socket file, as `user`. */
  url(database = "postgres", user = superuser): string {
    const host = encodeURIComponent(this.folder);
    const port = this.#settings["port"] ?? "5432";
    return `postgres:///${database}?host=${host}&port=${port}&user=${user}`;
  }

  /** Starts it, also after stop and kill. Settles when it takes connections. */
  async start(): Promise<void> {
    const settings = {
      listen_addresses: "",
      unix_socket_directories: this.folder,
      // Nobody pulls a plug here, and a kill leaves what the kernel has.
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

  /** What starts it: to enter a namespace takes root, which it has to give up afterwards. */
  #programAs(): string[] {
    const program = join(postgresPrograms ?? "", "postgres");
    if (this.#command.length === 0 || !this.#user) return [...this.#command, program];
    const { uid, gid } = this.#user;
    const as = ["setpriv", "--reuid", `${uid}`, "--regid", `${gid}`, "--clear-groups"];
    return [...this.#command, ...as, program];
  }

  /** Rows of one statement, as the server's own role. */
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
   * Reads the configuration again. Settles when every session applies it to its next statement:
   * `pg_reload_conf` only sends a signal, which the server follows later, and new sessions start with
   * what the server has read after it has passed the signal on to all others.
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

  /** Makes a replica take changes, and waits until it does. */
  async promote(): Promise<void> {
    const [[isPromoted] = []] = await this.run(`SELECT pg_promote(true, ${promoteSeconds})`);
    if (isPromoted !== true) {
      throw new Error(`the replica still only reads ${promoteSeconds} s after its promotion`);
    }
  }

  /** Makes the database of a URL, once: those who ask at the same time wait for the same one. */
  ensureDatabase(url: string): Promise<void> {
    const name = new URL(url).pathname.slice(1);
    const making = this.#databases.get(name) ?? this.#make(name);
    this.#databases.set(name, making);
    return making;
  }

  async #make(name: string): Promise<void> {
    const known = `SELECT 1 FROM pg_database WHERE datname = '${name}'`;
    if ((await this.run(known)).length === 0) await this.run(`CREATE DATABASE ${name}`);
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
        // it has ended by itself
      }
    }
  }

  /** Everything stands still until `resume`. */
  pause(): void {
    this.#signal("SIGSTOP");
  }

  resume(): void {
    this.#signal("SIGCONT");
  }

  /** Copies a database into a new one, by way of a file, as docs/postgres.md says. */
  copyByDump(from: string, to: string): void {
    const at = ["-h", this.folder, "-U", superuser];
    const file = join(this.folder, `${from}.dump`);
    this.#run("pg_dump", [...at, "--format=custom", `--file=${file}`, from]);
    this.#run("createdb", [...at, "--encoding=UTF8", "--template=template0", to]);
    this.#run("pg_restore", [...at, `--dbname=${to}`, "--exit-on-error", file]);
  }

  /** Ends it in good order, without waiting for its clients. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "close");
    server.kill("SIGINT");
    await ended;
  }

  /** kill -9 of all its processes. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "close"); // of the output, which its processes share
    server.kill("SIGSTOP"); // it starts no more of them
    this.#signal("SIGKILL");
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
