// A link-local address of this machine with its interface, as in "fe80::1%eth0".

import { once } from "node:events";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { expect } from "vitest";
import { closing } from "../closing.ts";
import { hasNamespaces, NetworkNamespace } from "./network-namespace.ts";

function find(): string | undefined {
  return Object.entries(networkInterfaces())
    .flatMap(([name, list]) => (list ?? []).map(({ address }) => `${address}%${name}`))
    .find((address) => address.startsWith("fe80:"));
}

/** False while the kernel checks that the address is unique. */
async function canListen(host: string | undefined): Promise<boolean> {
  if (host === undefined) return false;
  const server = createServer().listen(0, host);
  const isListening = await once(server, "listening").then(
    () => true,
    () => false,
  );
  server.close();
  return isListening;
}

/** Whether `linkLocalAddress` returns one: otherwise it needs root. */
export const hasLinkLocal = find() !== undefined || hasNamespaces;

/** Opens a network namespace for the test if this machine has no such address. */
export async function linkLocalAddress(): Promise<string> {
  if (find() === undefined) closing(NetworkNamespace.open()); // with an interface on this side
  await expect.poll(() => canListen(find())).toBe(true);
  return find() ?? "";
}
