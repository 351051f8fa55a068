// `shredway service` on a machine in a temporary folder. Tests that change owners need root.

import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/core/configuration/configuration.ts";
import { shredway } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { ids, Machine } from "./machine.ts";

const isRoot = process.geteuid?.() === 0;
const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;

const unit = "/etc/systemd/system/shredway.service";
const unprivileged = `${unit}.d/unprivileged.conf`;
const sysctl = "/etc/sysctl.d/60-shredway.conf";
const sysusers = "/etc/sysusers.d/shredway.conf";
const config = "/etc/shredway/shredway.yaml";

const installCommands = [
  `systemd-sysusers ${sysusers}`,
  "systemctl restart systemd-sysctl.service",
  "systemctl daemon-reload",
  "systemctl enable shredway.service",
];

function example(name: string): string {
  return readFileSync(join("examples/production", name), "utf8");
}

function withoutFirstLine(text: string): string {
  return text.slice(text.indexOf("\n") + 1);
}

async function installed(...words: readonly string[]): Promise<Machine> {
  const machine = new Machine();
  const { code, error } = await machine.service("install", ...words);
  expect({ code, error }).toEqual({ code: 0, error: "" });
  machine.commands();
  return machine;
}

describe.runIf(isRoot)("service install", () => {
  it("writes user, unit, kernel settings, folders and configuration, and enables the unit", async () => {
    const machine = new Machine();
    const { code, stdout, stderr } = await machine.service("install", "--unprivileged");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(machine.commands()).toEqual(installCommands);
    for (const [path, name] of [
      [sysusers, "shredway.sysusers.conf"],
      [sysctl, "shredway.sysctl.conf"],
      [unit, "shredway.service"],
      [unprivileged, "shredway.service.d/unprivileged.conf"],
    ] as const) {
      expect(machine.read(path)).toMatch(
        /^# Written by shredway service install, checksum \w{16}\./,
      );
      expect(withoutFirstLine(machine.read(path))).toBe(example(name));
    }
    expect(machine.read(config)).toBe(example("first.yaml"));
    const access = (path: string) => machine.snapshot("/")[path]?.split(" ", 2).join(" ");
    expect(access(unit)).toBe("100644 0:0");
    expect(access(config)).toBe(`100640 0:${ids.gid}`);
    expect(access("/etc/shredway")).toBe(`40750 0:${ids.gid}`);
    expect(access("/etc/shredway/secrets")).toBe(`40750 0:${ids.gid}`);
    expect(access("/var/lib/shredway")).toBe(`40700 ${ids.uid}:${ids.gid}`);
    expect(machine.read("/proc/sys/net/core/rmem_max")).toBe("67108864\n");
    expect(stdout).toContain(
      "sudo -u shredway shredway doctor --config /etc/shredway/shredway.yaml",
    );
    expect(stdout).toContain("sudo systemctl start shredway");
    expect(Object.keys(machine.snapshot()).filter((path) => path.endsWith(".new"))).toEqual([]);
  });

  it("uses the real node program, package and configuration in the unit", async () => {
    const machine = new Machine({
      node: "/usr/local/n/bin/node",
      packageFolder: "/usr/local/lib/node_modules/shredway",
    });
    const { code } = await machine.service("install", "--config", "/srv/relay/shredway.yaml");
    expect(code).toBe(0);
    expect(machine.read(unit)).toContain(
      "\nExecStart=/usr/local/n/bin/node --max-semi-space-size=8 --no-parallel-scavenge --v8-pool-size=1 /usr/local/lib/node_modules/shredway/dist/tools/shredway.js start --config /srv/relay/shredway.yaml\n",
    );
    expect(machine.read(unit)).not.toContain("/opt/shredway");
    expect(machine.exists("/srv/relay/secrets")).toBe(true);
    // A later call without --config keeps the path.
    const again = await machine.service("install");
    expect(again.stdout).toContain(`unchanged  ${unit}\n`);
    expect(machine.exists(config)).toBe(false);
  });

  it("states what is unchanged in a second run, and runs no command", async () => {
    const machine = await installed("--now");
    const before = machine.snapshot();
    const { code, stdout } = await machine.service("install", "--now");
    expect(code).toBe(0);
    expect(machine.commands()).toEqual([]);
    expect(machine.snapshot()).toEqual(before);
    for (const line of stdout.trim().split("\n")) expect(line).toMatch(/^unchanged {2}\S/);
    for (const path of [unit, sysctl, sysusers, config, "/var/lib/shredway"])
      expect(stdout).toContain(`unchanged  ${path}`);
  });

  it("updates a file of an older version, and restarts the service only with --now", async () => {
    const machine = await installed("--now");
    const older = new Machine({ packageFolder: "/srv/older" });
    await older.service("install");
    machine.write(unit, older.read(unit));
    const warned = await machine.service("install");
    expect(warned.stderr).toContain("systemctl restart shredway");
    expect(machine.commands()).toEqual(["systemctl daemon-reload"]);
    expect(withoutFirstLine(machine.read(unit))).toBe(example("shredway.service"));
    machine.write(unit, older.read(unit));
    expect((await machine.service("install", "--now")).code).toBe(0);
    expect(machine.commands()).toEqual([
      "systemctl daemon-reload",
      "systemctl restart shredway.service",
    ]);
  });

  it("accepts a copy of the example that was installed by hand", async () => {
    const machine = new Machine();
    machine.write(unit, `# by hand\n${example("shredway.service")}`);
    expect((await machine.service("install")).code).toBe(0);
    expect(machine.read(unit)).toMatch(/^# Written by/);
  });

  it("never overwrites an edited file without --force", async () => {
    const machine = await installed("--unprivileged");
    machine.write(unit, machine.read(unit).replace("WatchdogSec=30", "WatchdogSec=60"));
    machine.write(sysctl, "net.core.rmem_max = 1\n");
    const before = machine.snapshot();
    const { code, error } = await machine.service("install");
    expect(code).toBe(1);
    expect(error).toContain(`${unit} was edited after shredway service install wrote it`);
    expect(error).toContain("systemctl edit shredway");
    expect(error).toContain(`${sysctl} was not written by shredway service install`);
    expect(error).toContain("--force");
    const refused = await machine.service("uninstall");
    expect(refused.error).toContain(`${unit} was edited`);
    expect(refused.error).toContain("then remove the listed files with --force");
    expect(machine.snapshot()).toEqual(before);
    expect(machine.commands()).toEqual([]);
    expect((await machine.service("install", "--force")).code).toBe(0);
    expect(withoutFirstLine(machine.read(unit))).toBe(example("shredway.service"));
  });

  it("refuses a masked unit", async () => {
    const machine = new Machine();
    mkdirSync(join(machine.root, "/etc/systemd/system"), { recursive: true });
    symlinkSync("/dev/null", join(machine.root, unit));
    const { error } = await machine.service("install");
    expect(error).toContain(`${unit} is a symbolic link (a masked unit?)`);
  });

  it("never changes an existing configuration, and warns if the service cannot read it", async () => {
    const machine = new Machine();
    machine.write(config, "mine", 0o600);
    const { code, stdout, stderr } = await machine.service("install");
    expect(code).toBe(0);
    expect(stdout).toContain(`unchanged  ${config} (your configuration)`);
    expect(stderr).toContain(`${config} cannot be read by the user shredway; run: chgrp shredway`);
    expect(machine.snapshot()[config]).toBe("100600 0:0 mine");
  });

  it.each([...installCommands, "systemctl start shredway.service"])(
    "continues after a failure of %s",
    async (command) => {
      const reference = await installed("--now");
      const machine = new Machine();
      machine.failing(command);
      const { code, error, stderr } = await machine.service("install", "--now");
      if (command.includes("systemd-sysctl")) {
        expect(code).toBe(0);
        expect(stderr).toContain("warning: systemctl restart systemd-sysctl.service: exit code 1");
      } else {
        expect(code).toBe(1);
        expect(error).toContain(
          `cannot run ${command}: ${command}: exit code 1: failed on request`,
        );
        expect(error).toMatch(/\n\d+ of \d+ steps are finished\. Run the same command again/);
      }
      machine.failing("");
      expect(await machine.service("install", "--now")).toMatchObject({ code: 0, error: "" });
      expect(machine.snapshot()).toEqual(reference.snapshot());
      machine.commands();
      await machine.service("install", "--now");
      expect(machine.commands()).toEqual([]);
    },
  );

  it("continues after a kill while a file was written", async () => {
    const machine = await installed();
    machine.write("/etc/systemd/system/.shredway.service.new", "half", 0o600);
    unlinkSync(join(machine.root, unit));
    expect((await machine.service("install")).code).toBe(0);
    expect(machine.exists("/etc/systemd/system/.shredway.service.new")).toBe(false);
    expect(withoutFirstLine(machine.read(unit))).toBe(example("shredway.service"));
  });

  it.runIf(hasAnalyze)("writes a unit that systemd accepts", async () => {
    const machine = await installed("--unprivileged");
    const folder = temporaryFolder();
    mkdirSync(join(folder, "shredway.service.d"));
    const text = machine.read(unit).replaceAll("/usr/bin/node", process.execPath);
    writeFileSync(join(folder, "shredway.service"), text.replaceAll("file:/opt", "file:/"));
    writeFileSync(join(folder, "shredway.service.d/unprivileged.conf"), machine.read(unprivileged));
    const found = spawnSync("systemd-analyze", ["verify", join(folder, "shredway.service")], {
      encoding: "utf8",
    });
    expect({ status: found.status, text: found.stdout + found.stderr }).toEqual({
      status: 0,
      text: "",
    });
  });
});

describe.runIf(isRoot)("service install --dry-run", () => {
  it("prints a shell script whose result is that of the command", async () => {
    const [byScript, byCommand] = [new Machine(), new Machine()];
    const { stdout } = await byScript.service("install", "--unprivileged", "--now", "--dry-run");
    byScript.shell(stdout);
    await byCommand.service("install", "--unprivileged", "--now");
    expect(byScript.snapshot()).toEqual(byCommand.snapshot());
    expect(byScript.commands()).toEqual(byCommand.commands());
    const again = await byScript.service("install", "--unprivileged", "--now", "--dry-run");
    for (const line of again.stdout.trim().split("\n")) expect(line).toMatch(/^# /);
  });

  it("prints the steps of an uninstallation that has the same result", async () => {
    const [byScript, byCommand] = [await installed("--now"), await installed("--now")];
    const { stdout } = await byScript.service("uninstall", "--dry-run");
    byScript.shell(stdout.replaceAll(/^(rm|rmdir) \//gm, `$1 ${byScript.root}/`));
    await byCommand.service("uninstall");
    expect(byScript.snapshot()).toEqual(byCommand.snapshot());
    expect(byScript.commands()).toEqual(byCommand.commands());
  });
});

describe("--dry-run", () => {
  it.each([
    "install",
    "install --now --unprivileged --force",
    "install --config /srv/x/x.yaml",
    "uninstall",
  ])("of %s changes nothing, also without root and systemd", async (call) => {
    const words = call.split(" ");
    const machine = new Machine({ uid: 1000, hasSystemd: false });
    if (words[0] === "uninstall") machine.write(unit, example("shredway.service"));
    const before = machine.snapshot();
    const { code, stderr } = await machine.service(...words, "--dry-run");
    expect(code).toBe(0);
    expect(stderr).toContain("note: systemd does not manage this machine");
    expect(machine.snapshot()).toEqual(before);
    expect(machine.commands()).toEqual([]);
  });
});

describe.runIf(isRoot)("service uninstall", () => {
  it("removes what install wrote, and names what remains", async () => {
    const machine = new Machine();
    machine.write("/etc/sysctl.d/99-other.conf", "");
    await machine.service("install", "--unprivileged", "--now");
    machine.write("/etc/shredway/secrets/rpc", "secret");
    machine.commands();
    const { code, stdout } = await machine.service("uninstall");
    expect(code).toBe(0);
    expect(machine.commands()).toEqual([
      "systemctl disable --now shredway.service",
      "systemctl daemon-reload",
    ]);
    for (const path of [unit, `${unit}.d`, sysctl, sysusers])
      expect(machine.exists(path)).toBe(false);
    for (const path of [config, "/etc/shredway/secrets/rpc", "/var/lib/shredway"])
      expect(machine.exists(path)).toBe(true);
    expect(machine.exists("/etc/sysctl.d/99-other.conf")).toBe(true);
    expect(stdout).toContain(
      "Not removed: /etc/shredway, /var/lib/shredway, and the user shredway.",
    );
    expect(stdout).toContain("rm -r /etc/shredway /var/lib/shredway && userdel shredway");
    const again = await machine.service("uninstall");
    expect(again.stdout).toContain("the service is not installed: nothing to remove");
    expect((await machine.service("install", "--now")).code).toBe(0);
  });

  it("leaves drop-ins of the operator", async () => {
    const machine = await installed("--unprivileged");
    machine.write(`${unit}.d/override.conf`, "[Service]\nNice=-5\n");
    const { stdout } = await machine.service("uninstall");
    expect(machine.exists(`${unit}.d/override.conf`)).toBe(true);
    expect(machine.exists(unprivileged)).toBe(false);
    expect(stdout).toContain(`${unit}.d`);
  });

  it("continues after a failure", async () => {
    const machine = await installed("--now");
    machine.failing("systemctl daemon-reload");
    expect((await machine.service("uninstall")).error).toContain("Run the same command again");
    machine.failing("");
    expect(await machine.service("uninstall")).toMatchObject({ code: 0, error: "" });
    expect(machine.exists(sysctl)).toBe(false);
  });
});

describe("service install refuses", () => {
  it.each([
    [
      "/root/.nvm/versions/node/v20/bin/node",
      "/opt/shredway",
      "is below /root, which the unit hides",
    ],
    ["/usr/bin/node", "/home/x/shredway", "is below /home, which the unit hides (ProtectHome=yes)"],
    ["/usr/bin/node", "/tmp/shredway", "is below /tmp, which the unit hides (PrivateTmp=yes)"],
    ["/usr/bin/node", "/srv/_npx/1/node_modules/shredway", "is in npx's cache"],
    ["/usr/bin/node", "/srv/my programs/shredway", "contains a character"],
    ["/usr/bin/node", "/srv/100%/shredway", "contains a character"],
  ])("node %s with the program %s", async (node, packageFolder, message) => {
    const machine = new Machine({ node, packageFolder });
    const { code, error } = await machine.service("install");
    expect(code).toBe(1);
    expect(error).toContain(message);
    expect(error).toMatch(/; install (Shredway|Node\.js) /);
    expect(machine.commands()).toEqual([]);
  });

  it("a program that the service cannot read", async () => {
    const machine = new Machine();
    machine.write("/opt/shredway/dist/core/log.js", "", 0o600);
    expect((await machine.service("install")).error).toContain(
      "cannot be read by the user shredway: /opt/shredway/dist/core/log.js has mode 0600; chmod -R go+rX",
    );
    const closed = new Machine({ packageFolder: "/srv/closed/shredway" });
    spawnSync("chmod", ["0700", join(closed.root, "srv/closed")]);
    expect((await closed.service("install")).error).toContain("/srv/closed has mode 0700");
  });

  it("a checkout that is not compiled", async () => {
    const machine = new Machine();
    unlinkSync(join(machine.root, "/opt/shredway/dist/tools/shredway.js"));
    expect((await machine.service("install")).error).toContain("does not exist; compile it");
  });

  it.each(["/home/x/shredway.yaml", "/tmp/shredway.yaml", "/etc/a b.yaml"])(
    "--config %s",
    async (path) => {
      const { error } = await new Machine().service("install", "--config", path);
      expect(error).toContain(`--config ${JSON.stringify(path)}`);
      expect(error).toContain("choose a file such as /etc/shredway/shredway.yaml");
    },
  );

  it("users other than root, and machines without systemd", async () => {
    const { error } = await new Machine({ uid: 1000 }).service("install");
    expect(error).toContain(
      "runs as user 1000; expected root (0). Run: sudo shredway service install",
    );
    const without = await new Machine({ hasSystemd: false }).service("uninstall");
    expect(without.error).toContain("/run/systemd/system does not exist");
  });

  it.each([
    [["service"], "missing action; expected one of install, uninstall"],
    [["service", "remove"], 'unknown action "remove"; expected one of install, uninstall'],
    [["service", "uninstall", "--now"], "--now is not allowed with uninstall"],
    [["service", "install", "x"], 'install: unexpected argument "x"'],
  ])("wrong usage: %j", async (words, message) => {
    const { code, stderr } = await shredway(...words);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe("the first configuration", () => {
  it("is valid, also with the commented lines", () => {
    expect(existsSync("examples/production/first.yaml")).toBe(true);
    const { relay, data } = loadConfig("examples/production/first.yaml");
    expect(relay.sources).toEqual([]);
    expect(data.directory).toBe("/var/lib/shredway");
    const folder = temporaryFolder();
    mkdirSync(join(folder, "secrets"));
    writeFileSync(join(folder, "secrets/swqos"), "key\n");
    const text = example("first.yaml")
      .replaceAll(/^(\s*)(?:sources|destinations): \[\]\n\s*# {2}/gm, (line) =>
        line.replace(" []", "").replace("#", " "),
      )
      .replaceAll(/^#(?! )|^#(?= {2}-)/gm, "")
      .replace("YOUR_PUBLIC_KEY_FOR_TIERS", "4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi")
      .replace("YOUR_PUBLIC_KEY", "BFX2EZQAx6CqztJYb8MWqSnLgnt4yt5kLn6eZokzR6Dd");
    writeFileSync(join(folder, "shredway.yaml"), text);
    const whole = loadConfig(join(folder, "shredway.yaml"));
    expect(whole.relay.sources.length).toBe(1);
    expect(whole.relay.destinations.length).toBe(1);
    expect(whole.routes.length).toBe(1);
  });
});
