// A real service with few file descriptors: callers cannot use those of health checks.

import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { closing } from "../support/closing.ts";
import { freePort } from "../support/network/free-ports.ts";
import { Shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const filesMax = 400;

/** An open connection, or one that the service has reset. */
async function connected(port: number, sockets: Socket[]): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  await new Promise<void>((resolve) => {
    socket.once("connect", () => resolve());
    socket.once("error", () => resolve());
    socket.on("error", () => {});
  });
}

it("answers health checks while callers hold all connections that it accepts", async () => {
  const folder = temporaryFolder();
  const [http, operations] = [await freePort(), await freePort()];
  const config = join(folder, "shredway.yaml");
  writeFileSync(
    config,
    `relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off, receive: { bufferBytes: 65536 } }
http: { listen: "127.0.0.1:${http}", webSocketListen: [] }
operations: { listen: "127.0.0.1:${operations}" }
tips: { addresses: [ "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM" ] }
data: { directory: ${folder}/data }
`,
  );
  const limited = ["prlimit", `--nofile=${filesMax}:${filesMax}`];
  const service = Shredway.in(limited, "start", "--config", config);
  closing({ close: () => service.kill() });
  await service.printed(/^ready /m);
  await service.printed(
    /http\.connectionsMax is 10000, but each listener accepts only \d+ connections, because this process may open only 400 files/,
    "stderr",
  );
  const sockets: Socket[] = [];
  closing({
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  });
  for (let i = 0; i < filesMax; i++) await connected(http, sockets);
  for (let i = 0; i < 3; i++) {
    const response = await fetch(`http://127.0.0.1:${operations}/health/live`, {
      headers: { connection: "close" },
    });
    expect(response.status).toBe(200);
  }
  const metrics = await fetch(`http://127.0.0.1:${operations}/metrics`);
  const [, limit] = /^shredway_gateway_connections_limit (\d+)$/m.exec(await metrics.text()) ?? [];
  expect(Number(limit)).toBeLessThan(filesMax / 2);
});
