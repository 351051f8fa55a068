// Access to metrics and readiness, and their content, over real listeners of a real relay service.

import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openService } from "../../../src/app/open-service.ts";
import type { Service } from "../../../src/app/service.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { type Config, loadConfig } from "../../../src/core/configuration/configuration.ts";
import { createLogger } from "../../../src/core/log.ts";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Sends from one of the loopback addresses. */
function get(
  address: string,
  path: string,
  options: { from?: string; method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { from = "127.0.0.1", method = "GET", headers = {} } = options;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `http://${address}${path}`,
      { method, headers, localAddress: from },
      (response) => {
        let body = "";
        response.on("data", (chunk: Buffer) => {
          body += chunk.toString();
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}

interface Running {
  readonly folder: string;
  readonly service: Service;
  readonly gateway: string;
  readonly own: string;
  readonly reload: (change: string) => void;
}

async function running(
  operations: string,
  { http = "", more = "", folder = temporaryFolder() } = {},
): Promise<Running> {
  const file = join(folder, "shredway.yaml");
  const write = (text: string) =>
    writeFileSync(
      file,
      `relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off, receive: { bufferBytes: 65536 } }
http: { listen: "127.0.0.1:0", webSocketListen: [], ${http} }
tips: { addresses: ["11111111111111111111111111111112"] }
data: { directory: ${folder}/data }
operations: { listen: "127.0.0.1:0", ${text} }
${more}
`,
    );
  write(operations);
  const readConfig = (): Config => loadConfig(file);
  const service = closing(
    await openService({
      config: readConfig(),
      readConfig,
      prefault: false,
      log: createLogger({ level: "silent" }),
      clock: systemClock,
    }),
  );
  await service.start();
  return {
    folder,
    service,
    gateway: service.gateway?.addresses[0] ?? "",
    own: service.operations?.addresses[0] ?? "",
    reload: (change) => {
      write(change);
      expect(service.reload()).toBe(true);
    },
  };
}

const paths = ["/metrics", "/health/live", "/health/ready"];

describe("operators' pages", () => {
  it("exist on the gateway's listeners only for allowed addresses", async () => {
    const { gateway, own, reload } = await running("allow: [127.0.0.1]");
    const unknown = await get(gateway, "/nowhere", { from: "127.0.0.2" });
    expect(unknown.status).toBe(404);
    for (const path of paths) {
      expect((await get(gateway, path)).status).toBe(200);
      for (const method of ["GET", "HEAD", "POST", "OPTIONS"]) {
        const outgoing = { from: "127.0.0.2", method };
        expect(await get(gateway, path, outgoing)).toEqual(
          await get(gateway, "/nowhere", outgoing),
        );
      }
      for (const header of ["x-forwarded-for", "forwarded", "x-real-ip", "via"]) {
        const headers = { [header]: "127.0.0.1" };
        expect(await get(gateway, path, { headers })).toEqual(unknown);
      }
      expect((await get(own, path, { from: "127.0.0.2" })).status).toBe(200);
      expect((await get(own, path, { method: "HEAD" })).body).toBe("");
      expect((await get(own, path, { method: "POST" })).status).toBe(405);
    }
    expect((await get(own, "/relay")).status).toBe(404);
    expect(unknown.body).not.toMatch(/metrics|health\//);
    reload("allow: [127.0.0.2]");
    expect((await get(gateway, "/metrics", { from: "127.0.0.2" })).status).toBe(200);
    expect(await get(gateway, "/metrics")).toEqual(unknown);
  });

  it("trust only configured proxies", async () => {
    const { gateway } = await running("allow: [127.0.0.1, 198.51.100.0/24]", {
      http: "trustedProxies: [127.0.0.9]",
    });
    const through = async (from: string, forwarded: string) =>
      (await get(gateway, "/metrics", { from, headers: { "x-forwarded-for": forwarded } })).status;
    expect(await through("127.0.0.9", "198.51.100.7")).toBe(200);
    expect(await through("127.0.0.9", "198.51.100.7, 203.0.113.1")).toBe(404);
    expect(await through("127.0.0.9", "unknown")).toBe(404);
    expect(await through("127.0.0.1", "198.51.100.7")).toBe(404);
    const silent = { from: "127.0.0.9", headers: { via: "1.1 proxy" } };
    expect((await get(gateway, "/metrics", silent)).status).toBe(404);
  });

  it("report readiness and failed checks", async () => {
    const { service, own } = await running("allow: []");
    const ready = async () => {
      const { status, body } = await get(own, "/health/ready");
      const said: {
        ready: boolean;
        checks: { name: string; ok: boolean; critical: boolean; detail: string }[];
      } = JSON.parse(body);
      const { ready: isReady, checks } = said;
      expect(status).toBe(isReady ? 200 : 503);
      return Object.fromEntries(checks.map(({ name, ok }) => [name, ok]));
    };
    expect(await ready()).toEqual({
      running: true,
      data_plane: true,
      leader_schedule: true,
      slot_clock: false,
      shreds: false,
      routes: false,
      database: true,
      api_keys: false,
    });
    expect((await get(own, "/metrics")).body).toContain("\nshredway_ready 1\n");
    service.operations?.draining();
    expect(await ready()).toMatchObject({ running: false });
    expect((await get(own, "/metrics")).body).toContain("\nshredway_ready 0\n");
    expect((await get(own, "/health/live")).status).toBe(200);
  });

  it("report a changed certificate of the streams that cannot be used", async () => {
    const folder = temporaryFolder();
    const { keyPem, certificatePem } = newEcdsaCredentials("localhost");
    writeFileSync(join(folder, "key.pem"), keyPem, { mode: 0o600 });
    writeFileSync(join(folder, "certificate.pem"), certificatePem);
    const { service } = await running("allow: []", {
      more: 'streams: { listen: "127.0.0.1:0", tls: { certificate: certificate.pem, key: key.pem } }',
      folder,
    });
    const problem = () =>
      service.operations?.checks().find(({ name }) => name === "certificates")?.detail;
    expect(problem()).toBeUndefined();
    writeFileSync(join(folder, "certificate.pem"), "another text");
    await until(() => problem() !== undefined, "the check of certificates");
    expect(problem()).toMatch(
      /^streams: the new TLS certificate cannot be used; .*certificate.pem/,
    );
  });

  it("need a restart for other listeners, also at each later reload", async () => {
    const { service, folder } = await running("allow: []");
    const operations = service.operations;
    const original = loadConfig(join(folder, "shredway.yaml"));
    const listen = ["127.0.0.2:0"];
    const wanted = { ...original, operations: { ...original.operations, listen } };
    expect(operations?.apply(wanted)).toEqual(["operations.listen"]);
    expect(operations?.apply(wanted)).toEqual(["operations.listen"]);
    expect(operations?.apply(original)).toEqual([]);
  });
});
