// Calls of quiche that throw for the normal events of a connection, without their exceptions.
//
// Used by the connections of the TPU route, of the QUIC ingress and of the sandbox's leaders. quiche
// reports the reason later: as the error of the connection, or as its end.

import { closeName } from "./close-names.ts";
import type { QuicheAddress, QuicheConnection } from "./quiche.ts";

const packetBufferBytes = 1500;

interface OutgoingPacket {
  /** Not reused. */
  readonly packet: Buffer;
  readonly to: QuicheAddress;
}

/** quiche reads no zones ("fe80::1%eth0"); the kernel needs them for packets to link-local addresses. */
export function withoutZone({ host, port }: QuicheAddress): QuicheAddress {
  const end = host.indexOf("%");
  return { host: end < 0 ? host : host.slice(0, end), port };
}

/** Passes a received packet, which decryption overwrites. An invalid packet has no effect. */
export function takePacket(
  quic: QuicheConnection,
  packet: Uint8Array,
  path: { readonly from: QuicheAddress; readonly to: QuicheAddress },
): void {
  try {
    quic.recv(packet, path);
  } catch {
    // The packet is invalid or rejected: quiche then reports the end of the connection.
  }
}

/** The packets that wait to be sent; none for a connection that quiche has closed. */
export function* packetsOf(quic: QuicheConnection): Generator<OutgoingPacket> {
  for (;;) {
    const buffer = Buffer.allocUnsafe(packetBufferBytes);
    let sent: ReturnType<QuicheConnection["send"]>;
    try {
      sent = quic.send(buffer);
    } catch {
      return; // quiche has closed it; its timer reports the end
    }
    if (!sent) return;
    const [length, { to }] = sent;
    yield { packet: buffer.subarray(0, length), to };
  }
}

/** Has no effect on a closed connection. */
export function closeConnection(
  quic: QuicheConnection,
  isApplication: boolean,
  code: number,
  reason: string,
): void {
  try {
    quic.close(isApplication, code, Buffer.from(reason));
  } catch {
    // The connection is already closed.
  }
}

/** Name of the end of a closed connection (close-names.ts); "here_…": this side closed it. */
export function endNameOf(quic: QuicheConnection): string {
  const error = quic.peerError();
  if (error) return closeName(error);
  const local = quic.localError();
  if (local) return `here_${closeName(local)}`;
  return quic.isTimedOut() ? "idle_timeout" : "lost";
}
