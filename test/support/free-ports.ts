// Ports for those who need two in a row, and so cannot leave the choice to the kernel.

import { once } from "node:events";
import { createServer, type Server } from "node:net";

async function listening(port: number): Promise<Server | undefined> {
  const server = createServer();
  const opened = once(server, "listening").then(
    () => true,
    () => false,
  );
  server.listen({ port, host: "127.0.0.1", exclusive: true });
  return (await opened) ? server : undefined;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address ? address.port : 0;
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, "close");
}

/** A TCP port of loopback that is free, and the one above it. */
export async function freePortPair(): Promise<number> {
  for (;;) {
    const first = await listening(0);
    if (!first) throw new Error("expected a free port");
    const port = portOf(first);
    const second = port < 65_535 ? await listening(port + 1) : undefined;
    await closed(first);
    if (!second) continue;
    await closed(second);
    return port;
  }
}
