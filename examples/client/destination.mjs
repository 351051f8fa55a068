// Adds an address of this machine as a destination for shreds and verifies it.
//
// node destination.mjs GATEWAY [ADDRESS] [REGION]
//
// ADDRESS is ip:port (default 127.0.0.1:9001; the sandbox allows loopback). Without --receiver,
// this program listens there for the challenge and submits its token by a call. With --receiver, a
// receiver that runs there (../udp-c, ../udp-python, ../udp-rust) answers the challenge:
//
// node destination.mjs GATEWAY 127.0.0.1:9001 frankfurt --receiver

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { ShredwayCallError, ShredwayClient } from "shredway/client";

const words = process.argv.slice(2);
const answersItself = words.includes("--receiver");
const [gateway = "", address = "127.0.0.1:9001", region = "frankfurt"] = words.filter(
  (word) => word !== "--receiver",
);
const client = new ShredwayClient({ url: gateway });

/** Bytes 8 to 23 of a challenge, in hex. */
const tokenOf = (datagram) =>
  datagram.toString("latin1", 0, 8) === "SWPROOF1" ? datagram.toString("hex", 8, 24) : null;

async function addAndProve() {
  // Open the receiver first: the challenge is sent immediately.
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).replace(/^\[|\]$/g, "");
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  socket.bind(Number(address.slice(colon + 1)), host);
  await once(socket, "listening");
  const token = new Promise((found) => {
    socket.on("message", (datagram) => {
      const text = tokenOf(datagram);
      if (text !== null) found(text);
    });
  });
  try {
    const added = await client.addDestination({ region, address });
    console.log(added.id, added.state);
    return await client.proveDestination(added.id, await token);
  } finally {
    socket.close();
  }
}

try {
  let destination = answersItself
    ? await client.addDestination({ region, address })
    : await addAndProve();
  while (destination.state === "unproved") {
    await new Promise((done) => setTimeout(done, 200));
    const all = await client.getDestinations();
    destination = all.find(({ id }) => id === destination.id) ?? destination;
  }
  const { id, state, provedBy, proofEndsAt } = destination;
  console.log(id, address, state, `verified by ${provedBy}, until ${proofEndsAt}`);
  const { tier } = await client.getTier();
  console.log(
    tier === null ? "no tier yet: tier.mjs registers a tip" : `receives the shreds of ${tier}`,
  );
} catch (error) {
  if (!(error instanceof ShredwayCallError)) throw error;
  // The message begins with the reason that programs can compare.
  console.error(error.message);
  process.exitCode = 1;
}
