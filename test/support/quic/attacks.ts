// Attacks on the QUIC ingress, each bounded in number and time, by clients that QUIC libraries do not offer.
//
// Every function settles when its attack is over. None of them says whether the ingress withstood it.

import { createPrivateKey, createPublicKey, randomBytes, sign } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { packetBytesMax, type QuicheCredentials } from "../../../src/core/quic/quiche.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { until } from "../network/udp-receiver.ts";
import { needQuiche, QuicClient, type QuicClientOptions, type QuicEnd } from "./quic-client.ts";

export interface AttackTarget {
  /** "127.0.0.1:port" */
  readonly address: string;
  /** A valid API key. */
  readonly key: string;
}

const protocol = "shredway-tpu";

async function socketOnLoopback(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.on("error", () => undefined);
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}

function client({ address, key }: AttackTarget, options: QuicClientOptions = {}) {
  return QuicClient.open(address, { credentials: newEcdsaCredentials(key), protocol, ...options });
}

/** Begins handshakes, returns the token of each retry, and then says nothing. Returns the number of answers. */
export async function halfOpenHandshakes(target: AttackTarget, count: number): Promise<number> {
  const { Connection } = needQuiche();
  const config = QuicClient.configOf({ credentials: newEcdsaCredentials(target.key), protocol });
  const { port } = parseEndpoint(target.address);
  const remote = { host: "127.0.0.1", port };
  let answered = 0;
  const begin = async (): Promise<Socket> => {
    const socket = await socketOnLoopback();
    const local = { host: "127.0.0.1", port: socket.address().port };
    const quic = Connection.connect(null, randomBytes(20), local, remote, config);
    const sendNext = (): void => {
      const packet = Buffer.alloc(packetBytesMax);
      const length = quic.send(packet)?.[0] ?? 0;
      if (length > 0) socket.send(packet.subarray(0, length), port, "127.0.0.1");
    };
    socket.once("message", (packet) => {
      quic.recv(packet, { from: remote, to: local });
      sendNext();
      answered++;
    });
    sendNext();
    return socket;
  };
  const sockets: Socket[] = [];
  for (let i = 0; i < count; i++) sockets.push(await begin());
  await until(() => answered === count, "an answer to each first packet");
  await new Promise(setImmediate);
  for (const socket of sockets) socket.close();
  return answered;
}

/** Begins streams of both kinds and finishes none. Returns the responses to the bidirectional ones. */
export async function unfinishedStreams(
  target: AttackTarget,
  { connections, streams }: { readonly connections: number; readonly streams: number },
): Promise<Buffer[]> {
  const responses: Promise<Buffer>[] = [];
  const attackers: QuicClient[] = [];
  for (let i = 0; i < connections; i++) {
    const attacker = await client(target);
    await attacker.established;
    attackers.push(attacker);
    for (let k = 0; k < streams; k++) {
      attacker.begin(Buffer.from([1]));
      responses.push(attacker.beginRequest(Buffer.from([1])));
    }
  }
  const all = await Promise.all(responses);
  for (const attacker of attackers) await attacker.close();
  return all;
}

/** Sends every byte of its streams in a frame and a packet of its own. Returns the number of packets. */
export async function oneByteFrames(
  target: AttackTarget,
  { streams, bytes }: { readonly streams: number; readonly bytes: number },
): Promise<number> {
  const attacker = await client(target);
  await attacker.established;
  for (let i = 0; i < streams && !attacker.isOver; i++) {
    await until(() => attacker.credit > 0 || attacker.isOver, "credit");
    if (attacker.isOver) break;
    const id = attacker.begin(Buffer.from([1]));
    for (let at = 2; at < bytes; at++) {
      attacker.extend(id, Buffer.from([at & 0xff]));
      // The attacker shares this process with the sandbox, whose chain also needs time.
      if (at % 4 === 0) await new Promise(setImmediate);
    }
    attacker.finish(id, Buffer.from([0]));
  }
  const { sent } = attacker.quic.stats();
  await attacker.close();
  return sent;
}

export async function resetFlood(target: AttackTarget): Promise<QuicEnd> {
  const attacker = await client(target);
  await attacker.established;
  return resetUntilClosed(attacker);
}

/** Resets every stream that the client begins, until the server closes the connection. */
export async function resetUntilClosed(attacker: QuicClient): Promise<QuicEnd> {
  while (!attacker.isOver) {
    for (let i = attacker.credit; i > 0; i--) attacker.reset(attacker.begin(Buffer.from([1])));
    await new Promise(setImmediate);
  }
  return attacker.ended;
}

/** Presents keys that do not exist. Returns the reasons of the closes. */
export async function guessedKeys(target: AttackTarget, count: number): Promise<string[]> {
  const reasons: string[] = [];
  for (let i = 0; i < count; i++) {
    const guess = await client({ ...target, key: `guess-${i}` });
    reasons.push((await guess.ended).reason ?? "");
  }
  return reasons;
}

/** A client whose packets also arrive from many other addresses, each copy before the original. */
export async function copiedPackets(
  target: AttackTarget,
  { addresses, requests }: { readonly addresses: number; readonly requests: readonly Uint8Array[] },
): Promise<Buffer[]> {
  const { port } = parseEndpoint(target.address);
  const copiers = await Promise.all(Array.from({ length: addresses }, socketOnLoopback));
  let isCopied = false;
  const onTransmit = (packet: Buffer): void => {
    if (isCopied) for (const copier of copiers) copier.send(packet, port, "127.0.0.1");
  };
  const victim = await client(target, { onTransmit });
  await victim.established;
  isCopied = true;
  const responses: Buffer[] = [];
  for (const request of requests) responses.push(await victim.request(request));
  await victim.close();
  for (const copier of copiers) copier.close();
  return responses;
}

/** An element in DER, whose length has the fewest bytes. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const bytes: number[] = [];
  for (let rest = body.length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  const head = body.length < 0x80 ? [body.length] : [0x80 | bytes.length, ...bytes];
  return Buffer.concat([Buffer.from([tag, ...head]), body]);
}

/** Sequences in each other. */
function nested(depth: number): Uint8Array {
  let bytes: Uint8Array = new Uint8Array(0);
  for (let i = 0; i < depth; i++) bytes = der(0x30, bytes);
  return bytes;
}

/** OIDs of extensions in DER: the request for protection, and one without a meaning. */
const protectionOid = "060488370101";
const otherOid = "060488370105";

/** A valid certificate with an extension whose value is `content`, and with `subject`. */
function certificateWith(
  content: Uint8Array,
  subject: Uint8Array,
  oid = otherOid,
): QuicheCredentials {
  const { keyPem } = newEcdsaCredentials("x");
  const key = createPrivateKey(keyPem);
  const algorithm = der(0x30, Buffer.from("06082a8648ce3d040302", "hex"));
  const names = der(0x30, subject);
  const validity = der(
    0x30,
    der(0x17, Buffer.from("700101000000Z")),
    der(0x18, Buffer.from("99991231235959Z")),
  );
  const extension = der(0x30, Buffer.from(oid, "hex"), der(0x04, content));
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    algorithm,
    names,
    validity,
    names,
    createPublicKey(key).export({ format: "der", type: "spki" }),
    der(0xa3, der(0x30, extension)),
  );
  const signature = der(0x03, Buffer.from([0]), sign("sha256", body, key));
  return { keyPem, certificatePem: pemOf(der(0x30, body, algorithm, signature)) };
}

function pemOf(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString("base64");
  return `-----BEGIN CERTIFICATE-----\n${text.match(/.{1,64}/g)?.join("\n") ?? ""}\n-----END CERTIFICATE-----\n`;
}

function derOf({ certificatePem }: QuicheCredentials): Buffer {
  return Buffer.from(certificatePem.replaceAll(/-----[A-Z ]+-----|\s/g, ""), "base64");
}

const commonName = (text: string) =>
  der(0x31, der(0x30, Buffer.from("0603550403", "hex"), der(0x0c, Buffer.from(text))));

/** A certificate whose request for protection is a NULL instead of a BOOLEAN. */
export function invalidProtection(key: string): QuicheCredentials {
  return certificateWith(Buffer.from("0500", "hex"), commonName(key), protectionOid);
}

/** Huge and deeply nested certificates, and long chains. */
export function certificateBombs(key: string): QuicheCredentials[] {
  const own = commonName(key);
  const plain = certificateWith(Buffer.alloc(3000), own);
  const names = Buffer.concat(Array.from({ length: 500 }, (_, i) => commonName(`name-${i}`)));
  return [
    certificateWith(Buffer.alloc(12_000), own),
    certificateWith(Buffer.alloc(60_000), own),
    certificateWith(Buffer.alloc(250_000), own),
    certificateWith(nested(4000), own),
    certificateWith(Buffer.alloc(0), names),
    { ...plain, certificatePem: plain.certificatePem.repeat(20) },
    { ...plain, certificatePem: plain.certificatePem.repeat(100) },
  ];
}

/** Changed certificates that a client's library still loads. */
export function fuzzedCertificates(seed: number, count: number): QuicheCredentials[] {
  const random = new SeededRandom(seed);
  const found: QuicheCredentials[] = [];
  while (found.length < count) {
    const valid = newEcdsaCredentials(`fuzz-${found.length}`, { isProtected: true });
    const bytes = derOf(valid);
    for (let i = 0; i <= random.below(3); i++)
      bytes[random.below(bytes.length)] = random.below(256);
    const changed = { keyPem: valid.keyPem, certificatePem: pemOf(bytes) };
    try {
      QuicClient.configOf({ credentials: changed, protocol });
      found.push(changed);
    } catch {
      // The client's own library refuses it.
    }
  }
  return found;
}

/** Connects with every certificate at once. Returns how each connection ended, at the latest by its idle time. */
export async function presentCertificates(
  { address }: AttackTarget,
  certificates: readonly QuicheCredentials[],
): Promise<QuicEnd[]> {
  const clients = await Promise.all(
    certificates.map((credentials) =>
      QuicClient.open(address, { credentials, protocol, idleTimeoutMs: 6000 }),
    ),
  );
  return Promise.all(clients.map(({ ended }) => ended));
}
