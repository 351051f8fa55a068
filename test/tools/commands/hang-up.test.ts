// SIGHUP, as a reload or as a closed terminal sends it, to commands that must not end halfway.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Shredway, shredway } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const running: Shredway[] = [];

afterEach(async () => {
  for (const each of running.splice(0)) await each.kill();
});

/** Sends SIGHUP as early as possible: once the process has a handler for it. */
async function hangUpEarly(child: Shredway): Promise<void> {
  for (;;) {
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    if (status.includes("State:\tZ")) throw new Error("the program ended without a handler");
    const caught = /^SigCgt:\s+([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
    if ((BigInt(`0x${caught}`) & 1n) === 1n) break;
    await new Promise((resolve) => setImmediate(resolve));
  }
  child.signal("SIGHUP");
}

function run(...args: string[]): Shredway {
  const child = Shredway.run(...args);
  running.push(child);
  return child;
}

describe("SIGHUP", () => {
  it("ends the sandbox neither while it loads nor while it runs", async () => {
    const any = "127.0.0.1:0";
    const data = temporaryFolder();
    const sandbox = run(
      "start",
      "--udp",
      any,
      "--rpc",
      any,
      "--http",
      any,
      "--streams",
      any,
      "--quic",
      any,
      "--data",
      data,
    );
    await hangUpEarly(sandbox);
    await sandbox.printed(/^ready /m);
    sandbox.signal("SIGHUP");
    await sandbox.printed(/reload ignored: the sandbox has no configuration file/, "stderr");
    sandbox.signal("SIGTERM");
    expect((await sandbox.end()).code).toBe(0);
  });

  it("does not end an import", async () => {
    const folder = temporaryFolder();
    const [from, to] = [join(folder, "from"), join(folder, "to")];
    const file = join(folder, "shredway.export");
    const made = await shredway("keys", "create", "--account", "trading", "--data", from);
    expect(made.code).toBe(0);
    expect((await shredway("export", "--data", from, "--output", file)).code).toBe(0);
    const child = run("import", "--data", to, "--input", file);
    await hangUpEarly(child);
    const { code, stdout } = await child.end();
    expect(stdout).toContain("imported");
    expect(code).toBe(0);
  });
});
