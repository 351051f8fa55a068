// The installed package in its own folder: compiled, with its name, and the examples next to it.
// Imports of "shredway" resolve to the files of the field `exports`.

import { execFile, spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { sourceFiles } from "../support/source/source-tree.ts";

/** esbuild converts each file separately, like the compiler, in a tenth of the time. */
async function compile(folder: string): Promise<void> {
  const files = sourceFiles("src", [".ts", ".mjs"]);
  await Promise.all(
    files.map(async ({ path, text }) => {
      const { code } = await transform(text, { loader: "ts", format: "esm", target: "es2023" });
      const relinked = code.replaceAll(/(from |import |import\()"(\.[^"]*)\.ts"/g, '$1"$2.js"');
      const to = join(folder, "dist", path.slice("src/".length).replace(/\.ts$/, ".js"));
      mkdirSync(dirname(to), { recursive: true });
      writeFileSync(to, relinked);
    }),
  );
}

export class InstalledPackage {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async open(): Promise<InstalledPackage> {
    const folder = mkdtempSync(join(tmpdir(), "shredway-package-"));
    const installed = new InstalledPackage(folder);
    cpSync("package.json", join(folder, "package.json"));
    cpSync("examples", join(folder, "examples"), { recursive: true });
    for (const linked of ["node_modules", "build"]) {
      symlinkSync(resolve(linked), join(folder, linked));
    }
    await compile(folder);
    return installed;
  }

  /** The code block of a document whose first line contains `name`. */
  write(document: string, name: string, edit = (code: string): string => code): string {
    const blocks = readFileSync(document, "utf8").matchAll(/^```js\n(.*?)^```$/gms);
    const codes = Array.from(blocks, ([, code = ""]) => code);
    const code = codes.find((each) => each.startsWith(`// ${name}, `));
    if (code === undefined) throw new Error(`expected a block ${name} in ${document}`);
    writeFileSync(join(this.folder, name), edit(code));
    return name;
  }

  /** Runs to its end. Rejects if it fails, with its output. */
  async run(file: string, ...args: readonly string[]): Promise<string> {
    const program = file.endsWith(".sh") ? "sh" : process.execPath;
    const { stdout } = await promisify(execFile)(program, [file, ...args], { cwd: this.folder });
    return stdout;
  }

  start(file: string, ...args: readonly string[]): Program {
    return new Program(process.execPath, [file, ...args], this.folder);
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A program that runs beside the test. */
export class Program {
  stdout = "";
  stderr = "";
  readonly ended: Promise<number | null>;
  readonly #child;

  constructor(file: string, args: readonly string[], cwd?: string) {
    this.#child = spawn(file, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    this.#child.stdout.on("data", (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.ended = new Promise((resolveCode, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", resolveCode);
    });
  }

  /** For closing(): stops the program even if the test failed. */
  async close(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}
