// A connection that both addresses of a host refuse: Node's error for it has no text of its own.

import { once } from "node:events";
import { connect, type LookupFunction } from "node:net";
import { freePort } from "./free-ports.ts";

/** `text`: the texts of its errors, one for each address. */
export async function refusedHost(): Promise<{ error: unknown; text: string }> {
  const port = await freePort();
  const hosts = ["127.0.0.1", "127.0.0.2"];
  const addresses = hosts.map((address) => ({ address, family: 4 }));
  const lookup: LookupFunction = (_host, _options, found) => found(null, addresses);
  const socket = connect({ host: "two.example", port, lookup, autoSelectFamily: true });
  const [error]: unknown[] = await once(socket, "error");
  return { error, text: hosts.map((host) => `connect ECONNREFUSED ${host}:${port}`).join("; ") };
}
