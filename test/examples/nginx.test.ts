// examples/production/nginx.conf in a real nginx: the requests that reach the gateway, and those
// that do not. Debian's package `nginx-light` contains the program.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { Agent, request } from "node:https";
import type { Socket } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { systemClock } from "../../src/core/clock.ts";
import { closing } from "../support/closing.ts";
import { freePort } from "../support/network/free-ports.ts";
import { selfSignedCertificate, selfSignedKey } from "../support/quic/self-signed.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const hasNginx = spawnSync("nginx", ["-v"]).status === 0;

interface Upstream {
  readonly port: number;
  readonly requests: IncomingMessage[];
  /** Connections of the proxy. */
  readonly sockets: Set<Socket>;
}

/** In place of the gateway: records requests, and echoes over WebSocket. */
async function upstream(): Promise<Upstream> {
  const requests: IncomingMessage[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((incoming, answer) => {
    requests.push(incoming);
    incoming.resume();
    incoming.on("end", () => answer.end("ok"));
  });
  const peers = new WebSocketServer({ server });
  peers.on("connection", (peer, incoming) => {
    requests.push(incoming);
    peer.on("message", (data) => peer.send(data));
  });
  server.on("connection", (socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing({
    close: () => {
      peers.close();
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a TCP port");
  return { port: address.port, requests, sockets };
}

/** nginx with the example, with the paths and ports of the test. Returns its TLS port. */
async function nginx(folder: string, upstreamPort: number): Promise<number> {
  const port = await freePort();
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const example = readFileSync("examples/production/nginx.conf", "utf8")
    .replace("127.0.0.1:8780", `127.0.0.1:${upstreamPort}`)
    .replace("listen 443", `listen 127.0.0.1:${port}`)
    .replace(/^.*\[::\]:443.*$/m, "")
    .replace("/etc/ssl/shredway/fullchain.pem", file("cert.pem", selfSignedCertificate))
    .replace("/etc/ssl/shredway/key.pem", file("key.pem", selfSignedKey))
    .replaceAll("/var/log/nginx", folder)
    .replace("flush=1s", "flush=10ms");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((what) => `${what}_temp_path ${join(folder, what)};`)
    .join("\n");
  const main = `daemon off;\npid ${join(folder, "pid")};\nerror_log stderr;\nevents {}\nhttp {\n${temporary}\ninclude ${file("shredway.conf", example)};\n}\n`;
  const user = process.getuid?.() === 0 ? "user root;\n" : "";
  const config = file("nginx.conf", user + main);
  const checked = spawnSync("nginx", ["-t", "-c", config, "-p", folder], { encoding: "utf8" });
  expect(checked.stderr).toContain("test is successful");
  const child: ChildProcess = spawn("nginx", ["-c", config, "-p", folder], { stdio: "ignore" });
  closing({
    close: async () => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  });
  return port;
}

it.skipIf(!hasNginx)("forwards callers, and hides operators' pages", async () => {
  const folder = temporaryFolder();
  const gateway = await upstream();
  const port = await nginx(folder, gateway.port);
  const agent = new Agent({ keepAlive: true, ca: selfSignedCertificate });
  closing({ close: () => agent.destroy() });
  const ask = (path: string, method = "POST", body = "{}") =>
    new Promise<number>((resolve, reject) => {
      const outgoing = request(
        { host: "127.0.0.1", port, path, method, agent, headers: { "x-forwarded-for": "8.8.8.8" } },
        (answer) => {
          answer.resume();
          answer.on("end", () => resolve(answer.statusCode ?? 0));
        },
      );
      outgoing.on("error", reject);
      outgoing.end(method === "POST" ? body : undefined);
    });
  while ((await ask("/gethealth", "GET").catch(() => 0)) !== 200) await systemClock.sleep(20);
  gateway.requests.length = 0;

  for (let i = 0; i < 5; i++) expect(await ask("/relay?api-key=sw_hidden")).toBe(200);
  expect(await ask("/metrics", "GET")).toBe(404);
  expect(await ask("/health", "GET")).toBe(404);
  expect(await ask("/relay", "POST", "x".repeat(300_000))).toBe(413);
  expect(gateway.requests.map(({ url }) => url)).toEqual(
    Array.from({ length: 5 }, () => "/relay?api-key=sw_hidden"),
  );
  for (const { httpVersion, headers } of gateway.requests) {
    expect(httpVersion).toBe("1.1");
    expect(headers["x-forwarded-for"]).toBe("127.0.0.1");
    expect(headers.connection).not.toBe("close");
  }
  expect(gateway.sockets.size).toBe(1);

  const peer = new WebSocket(`wss://127.0.0.1:${port}/status?api-key=sw_hidden`, {
    ca: selfSignedCertificate,
  });
  closing({ close: () => peer.terminate() });
  await once(peer, "open");
  const echoed = once(peer, "message");
  peer.send("hello");
  expect(String((await echoed)[0])).toBe("hello");
  expect(gateway.requests.at(-1)?.headers["x-forwarded-for"]).toBe("127.0.0.1");

  const log = join(folder, "shredway.log");
  while (!readFileSync(log, "utf8").includes("/metrics")) await systemClock.sleep(20);
  expect(readFileSync(log, "utf8")).toContain('"POST /relay" 200');
  expect(readFileSync(log, "utf8")).not.toContain("hidden");
});
