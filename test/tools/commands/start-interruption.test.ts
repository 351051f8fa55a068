// SIGTERM while the service starts, or while a call of it is unanswered: the end waits for nobody.

import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { closing } from "../../support/closing.ts";
import { Shredway } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** A server that accepts connections and never answers. `connected`: after its first byte. */
async function silentServer(): Promise<{ readonly address: string; connected: Promise<void> }> {
  const sockets: Socket[] = [];
  let notify = (): void => {};
  const connected = new Promise<void>((resolve) => {
    notify = resolve;
  });
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.once("data", notify);
  });
  closing({
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a TCP port");
  return { address: `127.0.0.1:${address.port}`, connected };
}

function start(lines: string): Shredway {
  const folder = temporaryFolder();
  const config = join(folder, "shredway.yaml");
  const common = `http: { listen: "127.0.0.1:0" }
tips: { addresses: [ "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM" ] }
`;
  writeFileSync(config, common + lines.replace("FOLDER", join(folder, "data")));
  const service = Shredway.run("start", "--config", config);
  closing({ close: () => service.kill() });
  return service;
}

it("ends a start that waits for a node", async () => {
  const node = await silentServer();
  const service = start(`relay: { listen: "127.0.0.1:0", shredVersion: 1 }
solana: { rpc: "http://${node.address}" }
data: { directory: FOLDER }
`);
  await node.connected;
  service.signal("SIGTERM");
  const { code, stdout, stderr } = await service.end();
  expect(stderr).toContain("start: a signal ended it before the service was ready");
  expect(stderr).not.toContain("leader schedule: no new schedule");
  expect(stdout).toBe("");
  expect(code).toBe(0);
});

it("ends a start that waits for PostgreSQL", async () => {
  const database = await silentServer();
  const service = start(`relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off }
data: { directory: FOLDER, postgres: "postgres://user@${database.address}/shredway" }
`);
  await database.connected;
  service.signal("SIGTERM");
  const { code, stdout, stderr } = await service.end();
  expect(stderr).toContain("start: a signal ended it before the service was ready");
  expect(stderr).not.toContain("could not use");
  expect(stdout).toBe("");
  expect(code).toBe(0);
});
