// A service under a service manager: notifications of its start, reloads, watchdog and end.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { closing } from "../../support/closing.ts";
import { NotifySocket } from "../../support/processes/notify-socket.ts";
import { Shredway } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const relay = "listen: 127.0.0.1:0, authentication: off, shredVersion: 1";
const receiver = '{ name: late, address: "192.0.2.10:9001", tier: tier-1 }';

it("reports its states, and the start and end of each reload", async () => {
  const folder = temporaryFolder();
  const address = join(folder, "notify");
  const socket = closing(await NotifySocket.open(address));
  const config = join(folder, "shredway.yaml");
  const write = (more: string) => writeFileSync(config, `relay: { ${relay}${more} }\n`);
  write("");
  const environment = [`NOTIFY_SOCKET=${address}`, "WATCHDOG_USEC=1500000"];
  const service = Shredway.in(["env", ...environment], "start", "--config", config, "--stats", "1");
  closing({ close: () => service.kill() });

  const ready = await socket.hears(/^READY=1$/);
  expect(socket.received[0]).toBe("STATUS=starting");
  expect(socket.received[1]).toMatch(/^EXTEND_TIMEOUT_USEC=\d+\n/);
  expect(ready.text).toMatch(/\nSTATUS=ready listen=127\.0\.0\.1:\d+ workers=1 .*destinations=0 /);
  expect(service.stdout).toContain(ready.text.split("STATUS=")[1]);
  const alive = await socket.hears(/^WATCHDOG=1$/, ready.at);
  await socket.hears(/^WATCHDOG=1$/, alive.at + 1);
  await socket.hears(/^STATUS=relaying: 0 shreds\/s in, 0\/s distinct, 0\/s out$/, ready.at);

  write(`, destinations: [${receiver}]`);
  service.signal("SIGHUP");
  const reloading = await socket.hears(/^RELOADING=1$/, ready.at);
  const usec = Number(/^MONOTONIC_USEC=(\d+)$/m.exec(reloading.text)?.[1]);
  // The manager uses this machine's clock, which node's hrtime reads too.
  expect(usec).toBeLessThanOrEqual(Number(process.hrtime.bigint() / 1000n));
  expect(usec).toBeGreaterThan(Number(process.hrtime.bigint() / 1000n) - 60_000_000);
  const reloaded = await socket.hears(/^READY=1$/, reloading.at);
  expect(reloaded.text).toContain("destinations=1 ");

  write(", workers: none");
  service.signal("SIGHUP");
  const repeated = await socket.hears(/^RELOADING=1$/, reloaded.at);
  const refused = await socket.hears(/^READY=1$/, repeated.at);
  expect(refused.text).toContain(
    "STATUS=the new configuration was refused and the old one remains active",
  );

  service.signal("SIGUSR1");
  service.signal("SIGUSR2");
  await service.printed(/"msg":"numbers"/, "stderr");
  expect(service.stderr).not.toContain("Debugger listening");

  service.signal("SIGTERM");
  const { code } = await service.end();
  expect(code).toBe(0);
  const stopping = await socket.hears(/^STOPPING=1$/, refused.at);
  expect(stopping.text).toContain("STATUS=draining");
});

it("ignores a reload while the service drains", async () => {
  const folder = temporaryFolder();
  const address = join(folder, "notify");
  const socket = closing(await NotifySocket.open(address));
  const config = join(folder, "shredway.yaml");
  writeFileSync(
    config,
    `relay: { ${relay} }
http: { listen: "127.0.0.1:0" }
tips: { addresses: [ "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM" ] }
data: { directory: ${folder}/data }
`,
  );
  const environment = [`NOTIFY_SOCKET=${address}`];
  const service = Shredway.in(["env", ...environment], "start", "--config", config, "--stats", "0");
  closing({ close: () => service.kill() });
  const ready = await socket.hears(/^READY=1$/);
  const port = Number(/ http=127\.0\.0\.1:(\d+)/.exec(ready.text)?.[1]);

  // The drain waits for the rest of the second request.
  const client = connect(port, "127.0.0.1");
  closing({ close: () => void client.destroy() });
  client.write("GET /gethealth HTTP/1.1\r\nHost: a\r\n\r\n");
  await once(client, "data");
  client.write(
    "POST /relay HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
  );
  await once(client, "data");
  service.signal("SIGTERM");
  const stopping = await socket.hears(/^STOPPING=1$/, ready.at);
  service.signal("SIGHUP");
  await service.printed(/reload: ignored, because the service is shutting down/, "stderr");
  const { code } = await service.end();
  expect(code).toBe(0);
  expect(socket.received.slice(stopping.at).join("\n")).not.toMatch(/READY=1|RELOADING=1/);
});
