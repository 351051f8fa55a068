// QUIC: what this project uses of quiche, and whether it can be had.
//
// The only file that knows @matrixai/quic, an optional dependency, loaded when somebody speaks QUIC:
// its low-level binding (quiche 0.18 with BoringSSL), no sockets and no timers of its own. Serves both
// sides: the routes to leaders (connection.ts) and the leaders of a sandbox. Calls throw what quiche
// refuses, as an Error whose message is quiche's word for it ("StreamLimit", "InvalidPacket", …);
// "there is nothing (more) to do" is null. A connection is used by the thread that made it.

import { createRequire } from "node:module";
import { messageOf } from "../../core/errors.ts";
import type { Quiche, QuicheConfig } from "./quiche-binding.ts";

export type {
  Quiche,
  QuicheAddress,
  QuicheConfig,
  QuicheConnection,
  QuicheHeader,
} from "./quiche-binding.ts";

/** Key and certificate in PEM, as certificate.ts makes them. */
export interface QuicheCredentials {
  readonly keyPem: string;
  readonly certificatePem: string;
}

interface QuicheSettings {
  readonly credentials: QuicheCredentials;
  /** Of a server: asks the other side for a certificate, and takes any. A client verifies nothing. */
  readonly asksCertificate?: boolean;
  readonly applicationProtocol: string;
  readonly idleTimeoutMs: number;
  /** UDP payload of a packet, both ways. */
  readonly packetBytesMax: number;
  /** What the other side may send before it is read: of all streams, and of each. */
  readonly connectionBytesMax: number;
  readonly streamBytesMax: number;
  /** Unidirectional streams of the other side, open at once. */
  readonly streamsMax: number;
}

/** What leaders take transactions by; facts of November 2026 (Agave, Firedancer). */
export const tpuProtocol = "solana-tpu";
/** IPv6's least MTU: what every path carries. */
export const packetBytesMax = 1280;

/** Leaders have Ed25519; what else may stand behind a partner's port is taken, too. */
const signatureAlgorithms = [
  "ed25519",
  "ecdsa_secp256r1_sha256",
  "ecdsa_secp384r1_sha384",
  "rsa_pss_rsae_sha256",
  "rsa_pss_rsae_sha384",
  "rsa_pss_rsae_sha512",
].join(":");

export const quicheHint = "install it with: npm install --include=optional";

type Loaded = { readonly quiche: Quiche } | { readonly problem: string };
let loaded: Loaded | undefined;

function load(): Loaded {
  try {
    const module: { default: Quiche } = createRequire(import.meta.url)(
      "@matrixai/quic/dist/native/quiche.js",
    );
    return { quiche: module.default };
  } catch (error) {
    return { problem: messageOf(error).split("\n", 1)[0] ?? "" };
  }
}

/** Null: the package is missing, or is not for this machine; `quicheProblem` says which. */
export function loadQuiche(): Quiche | null {
  loaded ??= load();
  return "quiche" in loaded ? loaded.quiche : null;
}

/** Why there is no quiche here, on one line; null: there is. */
export function quicheProblem(): string | null {
  loaded ??= load();
  return "problem" in loaded ? loaded.problem : null;
}

/** TLS 1.3 alone, no resumption, no early data. Throws quiche's Error for a key that is none. */
export function buildQuicheConfig(quiche: Quiche, settings: QuicheSettings): QuicheConfig {
  const { keyPem, certificatePem } = settings.credentials;
  const asksCertificate = settings.asksCertificate ?? false;
  const config = quiche.Config.withBoringSslCtx(
    asksCertificate,
    asksCertificate,
    null,
    [Buffer.from(keyPem)],
    [Buffer.from(certificatePem)],
    signatureAlgorithms,
  );
  config.grease(false);
  config.setApplicationProtos([settings.applicationProtocol]);
  config.setMaxIdleTimeout(settings.idleTimeoutMs);
  config.setMaxRecvUdpPayloadSize(Math.max(settings.packetBytesMax, 1500));
  config.setMaxSendUdpPayloadSize(settings.packetBytesMax);
  config.setInitialMaxData(settings.connectionBytesMax);
  config.setInitialMaxStreamDataBidiLocal(0);
  config.setInitialMaxStreamDataBidiRemote(0);
  config.setInitialMaxStreamDataUni(settings.streamBytesMax);
  config.setInitialMaxStreamsBidi(0);
  config.setInitialMaxStreamsUni(settings.streamsMax);
  config.setDisableActiveMigration(true);
  config.enableDgram(false, 0, 0);
  return config;
}
