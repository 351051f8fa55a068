// TLS connections to PostgreSQL: only to the intended server.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { PostgresDriver } from "../../../../src/platform/store/postgres/driver.ts";
import { closing } from "../../../support/closing.ts";
import { freePort } from "../../../support/network/free-ports.ts";
import { hasOpenssl, makeCertificate } from "../../../support/network/test-certificate.ts";
import { PostgresServer, postgresPrograms, superuser } from "../../../support/postgres/postgres.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";
import { silent } from "../files.ts";

describe.skipIf(postgresPrograms === null || !hasOpenssl)("TLS", () => {
  it("connects only to a server with a trusted certificate for its name", async () => {
    const folder = temporaryFolder();
    const names = "DNS:localhost"; // not 127.0.0.1
    const own = makeCertificate(folder, "own", { names });
    const other = makeCertificate(folder, "other", { names });
    const port = String(await freePort());
    const server = await PostgresServer.start({
      files: {
        "server.key": readFileSync(own.key, "utf8"),
        "server.crt": readFileSync(own.certificate, "utf8"),
      },
      settings: {
        listen_addresses: "127.0.0.1",
        port,
        ssl: "on",
        ssl_key_file: "../server.key",
        ssl_cert_file: "../server.crt",
      },
      access: ["local all all trust", "hostssl all all 127.0.0.1/32 trust"],
    });
    closing({ close: () => server.remove() });
    const end = async (host: string, options: string): Promise<string> => {
      const url = `postgres://${superuser}@${host}:${port}/postgres${options}`;
      try {
        const driver = await PostgresDriver.open({ url, clock: systemClock, log: silent });
        const mine = "SELECT CAST(ssl AS integer) FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        const [row] = await driver.query(mine, []);
        await driver.close();
        return `open, encrypted: ${String(row?.[0])}`;
      } catch (error) {
        return String(error);
      }
    };
    const full = (certificate: string) => `?sslmode=verify-full&sslrootcert=${certificate}`;
    expect(await end("localhost", full(own.certificate))).toBe("open, encrypted: 1");
    expect(await end("localhost", full(other.certificate))).toMatch(/self-signed certificate/);
    expect(await end("127.0.0.1", full(own.certificate))).toMatch(/altnames|does not match/);
    // With several servers, each needs a certificate for its own name.
    expect(await end(`127.0.0.1:${port},localhost`, full(own.certificate))).toBe(
      "open, encrypted: 1",
    );
    const both = await end(`127.0.0.1:${port},localhost`, full(other.certificate));
    expect(both).toMatch(/127.0.0.1:\d+: .*; localhost:\d+: .*self-signed certificate/);
    expect(await end("localhost", "")).toMatch(
      /the server rejected the role or the password .*no encryption/,
    );
  });
});
