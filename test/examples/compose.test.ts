// compose.yaml: everything about it that can be checked without a Docker engine.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { loadConfig } from "../../src/core/configuration/configuration.ts";
import { shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

interface Service {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly restart: string;
  readonly network_mode: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
}

const text = readFileSync("compose.yaml", "utf8");
const compose: {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
} = parse(text);

const configFolder = "examples/compose/config";
const hasCompose = spawnSync("docker-compose", ["--version"]).status === 0;
const isRoot = process.geteuid?.() === 0;

function serviceOf(name: string): Service {
  const service = compose.services[name];
  if (!service) throw new Error(`expected a service ${name}`);
  return service;
}

/** Source and target of each mount; the default of a variable is its value. */
function mountsOf({ volumes }: Service): { readonly from: string; readonly to: string }[] {
  return volumes.map((volume) => {
    const [from = "", to = ""] = volume.replace(/\$\{\w+:-([^}]*)\}/, "$1").split(":");
    return { from, to };
  });
}

function targetOf(name: string, from: string): string | undefined {
  return mountsOf(serviceOf(name)).find((mount) => mount.from === from)?.to;
}

describe("compose.yaml", () => {
  it
    .runIf(hasCompose)
    .each([[["compose.yaml"]], [["compose.yaml", "examples/compose/clone.yaml"]]])(
    "is accepted by docker-compose: %j",
    (files) => {
      const words = files.flatMap((file) => ["-f", file]);
      const found = spawnSync("docker-compose", [...words, "config"], { encoding: "utf8" });
      expect({ status: found.status, stderr: found.stderr }).toEqual({ status: 0, stderr: "" });
      expect(Object.keys(parse(found.stdout).services)).toEqual(
        Object.keys(compose.services).toSorted(),
      );
      // Compose replaces "$$" by "$"; another "$" would be a variable.
      expect(text.match(/(?<!\$)\$(?![${])/g)).toBe(null);
    },
  );

  it("has the five services, with exact versions and restart policies", () => {
    const names = ["passwords", "postgres", "shredway", "prometheus", "grafana"];
    expect(Object.keys(compose.services)).toEqual(names);
    for (const [name, { image, restart, healthcheck }] of Object.entries(compose.services)) {
      expect(image).toMatch(/^[a-z/-]+:v?\d+\.\d+(\.\d+)?(-[a-z]+)?$/);
      expect(restart).toBe(name === "passwords" ? "no" : "unless-stopped");
      expect(healthcheck === undefined).toBe(name === "passwords");
    }
    const { version }: { version: string } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(serviceOf("shredway").image).toBe(`shredway:${version}`);
    expect(existsSync(serviceOf("shredway").build?.dockerfile ?? "")).toBe(true);
  });

  it("mounts files that exist, and named volumes", () => {
    const named = new Set<string>();
    for (const { from } of Object.values(compose.services).flatMap(mountsOf)) {
      if (from.startsWith("./")) expect(existsSync(from)).toBe(true);
      else named.add(from);
    }
    expect([...named].toSorted()).toEqual(Object.keys(compose.volumes).toSorted());
  });

  it("waits for conditions that the other service can reach", () => {
    for (const { depends_on: all = {} } of Object.values(compose.services)) {
      for (const [name, { condition }] of Object.entries(all)) {
        const isOnce = serviceOf(name).restart === "no";
        expect(condition).toBe(isOnce ? "service_completed_successfully" : "service_healthy");
      }
    }
  });

  it("contains no password", () => {
    for (const { environment = {} } of Object.values(compose.services)) {
      for (const [key, value] of Object.entries(environment))
        if (/PASS|SECRET|TOKEN/.test(key)) expect([key.slice(-4), value[0]]).toEqual(["FILE", "/"]);
    }
    expect(readFileSync(".gitignore", "utf8").split("\n")).toContain("/.env");
  });

  it("listens only on loopback, except for the relay", () => {
    expect(serviceOf("prometheus").command).toContain("--web.listen-address=127.0.0.1:9090");
    expect(serviceOf("grafana").environment?.["GF_SERVER_HTTP_ADDR"]).toBe("127.0.0.1");
    expect(serviceOf("postgres").network_mode).toBe("none");
  });

  it("stops later than a drain", () => {
    expect(text).toContain("stop_grace_period: 30s");
    const unit = readFileSync("examples/production/shredway.service", "utf8");
    expect(unit).toContain("TimeoutStopSec=30\n");
  });
});

describe("its configuration of Shredway", () => {
  /** The configuration with the paths of a test's folder instead of the container's. */
  function configuration(): string {
    const folder = temporaryFolder();
    cpSync(configFolder, folder, { recursive: true });
    writeFileSync(join(folder, "postgres"), "pass/word");
    const written = readFileSync(join(folder, "shredway.yaml"), "utf8");
    const local = written.replace("/passwords/postgres", join(folder, "postgres"));
    expect(local).not.toBe(written);
    writeFileSync(join(folder, "shredway.yaml"), local);
    return join(folder, "shredway.yaml");
  }

  it("is accepted, and refers to what compose.yaml mounts", async () => {
    const file = configuration();
    const shown = await shredway("start", "--config", file, "--print-config");
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    const { data, http } = loadConfig(file);
    const socket = targetOf("postgres", "postgres-socket");
    expect(data.postgres).toBe(`postgres://shredway:pass%2Fword@localhost/shredway?host=${socket}`);
    expect(targetOf("shredway", "postgres-socket")).toBe(socket);
    expect(targetOf("shredway", "passwords")).toBe("/passwords");
    expect(targetOf("shredway", "shredway")).toBe(data.directory);
    expect(targetOf("shredway", `./${configFolder}`)).toBe("/etc/shredway");
    expect(http?.listen).toEqual(["127.0.0.1:8780"]);
    expect(serviceOf("shredway").healthcheck?.test.join(" ")).toContain(
      `http://${http?.listen[0]}/health/live`,
    );
    const { environment } = serviceOf("postgres");
    expect(environment).toMatchObject({ POSTGRES_USER: "shredway", POSTGRES_DB: "shredway" });
  });
});

describe("its monitoring", () => {
  it("scrapes the gateway, and finds the alerts", () => {
    const file = "examples/production/prometheus/prometheus.yml";
    const prometheus = parse(readFileSync(file, "utf8"));
    expect(prometheus.scrape_configs[0].static_configs[0].targets).toEqual(["127.0.0.1:8780"]);
    expect(targetOf("prometheus", "./examples/production/prometheus")).toBe("/etc/prometheus");
    expect(serviceOf("prometheus").command).toContain(
      "--config.file=/etc/prometheus/prometheus.yml",
    );
    for (const name of prometheus.rule_files)
      expect(existsSync(join("examples/production/prometheus", name))).toBe(true);
  });

  it("provisions the data source and the dashboard in Grafana", () => {
    const folder = "examples/production/grafana";
    const { datasources } = parse(
      readFileSync(`${folder}/provisioning/datasources/prometheus.yml`, "utf8"),
    );
    expect(datasources).toMatchObject([
      { type: "prometheus", url: "http://127.0.0.1:9090", isDefault: true },
    ]);
    expect(targetOf("grafana", `./${folder}/provisioning`)).toBe("/etc/grafana/provisioning");
    const { providers } = parse(
      readFileSync(`${folder}/provisioning/dashboards/shredway.yml`, "utf8"),
    );
    expect(targetOf("grafana", `./${folder}/shredway.json`)).toBe(
      `${providers[0].options.path}/shredway.json`,
    );
    // The dashboard selects the default data source of type prometheus; its panels refer to the variable.
    const dashboard: string = readFileSync(`${folder}/shredway.json`, "utf8");
    const { templating }: { templating: { list: { name: string; query: unknown }[] } } =
      JSON.parse(dashboard);
    expect(templating.list[0]).toMatchObject({ name: "datasource", query: "prometheus" });
    const uids = [...dashboard.matchAll(/^ {6,}"uid": "([^"]+)"/gm)].map(([, uid = ""]) => uid);
    const variable = /^(\$\{datasource\}|-- Grafana --)$/;
    expect(uids.length).toBeGreaterThan(10);
    expect(uids.filter((uid) => !variable.test(uid))).toEqual([]);
  });
});

describe("generate-passwords.sh", () => {
  it.runIf(isRoot)("writes random passwords once, each for its users only", () => {
    const folders = [temporaryFolder(), temporaryFolder()];
    const run = (folder: string) =>
      spawnSync("sh", ["-eu", "examples/compose/generate-passwords.sh", folder]).status;
    const read = (folder: string, name: string) => readFileSync(join(folder, name), "utf8");
    for (const folder of folders) {
      expect(run(folder)).toBe(0);
      expect(read(folder, "postgres")).toMatch(/^[0-9a-f]{48}$/);
      expect(read(folder, "grafana")).not.toBe(read(folder, "postgres"));
    }
    const [first = "", second = ""] = folders;
    expect(read(first, "postgres")).not.toBe(read(second, "postgres"));
    const before = read(first, "postgres");
    mkdirSync(join(first, "other"));
    expect(run(first)).toBe(0);
    expect(read(first, "postgres")).toBe(before);
    const { uid, gid, mode } = statSync(join(first, "postgres"));
    expect([uid, gid, mode & 0o777]).toEqual([10_001, 999, 0o440]);
    const grafana = statSync(join(first, "grafana"));
    expect([grafana.uid, grafana.mode & 0o777]).toEqual([472, 0o400]);
  });
});
