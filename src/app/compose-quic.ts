// Composition of the QUIC ingress: listeners, certificate, and the gateway behind it.
//
// Called by compose-gateway.ts if the configuration has a section `quic`.

import { parseAddress } from "../core/addresses/addresses.ts";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { ShredwayError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { type QuicheCredentials, quicheHint, quicheProblem } from "../core/quic/quiche.ts";
import type { TlsMaterial } from "../core/tls-material.ts";
import type { KeyRing } from "../gateway/accounts/key-ring.ts";
import type { PublicKeys } from "../gateway/accounts/public-keys.ts";
import type { ApiKey } from "../gateway/accounts/types.ts";
import type { Gateway } from "../gateway/endpoints/gateway.ts";
import { Query } from "../gateway/endpoints/query.ts";
import type { FastPath } from "../gateway/fast-path/fast-path.ts";
import { StreamOffers } from "../gateway/fast-path/stream-offers.ts";
import { TlsCertificate } from "../gateway/http/tls-certificate.ts";
import { type ProtectedListener, QuicIngress } from "../gateway/quic/quic-ingress.ts";
import { checkServerCredentials } from "../gateway/quic/server-credentials.ts";
import { ensureQuicCertificate, fingerprintOf } from "./quic-certificate.ts";
import { ensureQuicSecret } from "./quic-secret.ts";

interface QuicDependencies {
  readonly config: Config;
  /** Called after the start only: the sockets are opened before the gateway exists. */
  readonly gateway: () => Pick<Gateway, "callers" | "answerStream" | "rateLimited">;
  readonly keyRing: KeyRing;
  readonly publicKeys: Pick<PublicKeys, "find">;
  /** null: transactions are sent after they were read. */
  readonly fastPath: FastPath | null;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface QuicService {
  readonly ingress: QuicIngress;
  /** null: the service made its own certificate. */
  readonly certificate: Pick<TlsCertificate, "problem"> | null;
  /** SHA-256 of the certificate at the start, which clients may pin. */
  readonly fingerprint: string;
  /** Ends the ingress and follows its certificate no longer. */
  close(): Promise<void>;
}

function listenersOf({
  listen,
  protectedListen,
  swqosOnlyListen,
}: NonNullable<Config["quic"]>): ProtectedListener[] {
  const plain = { isProtected: false, isSwqosOnly: false };
  return [
    ...listen.map((address) => ({ ...plain, address })),
    ...protectedListen.map((address) => ({ ...plain, address, isProtected: true })),
    ...swqosOnlyListen.map((address) => ({ ...plain, address, isSwqosOnly: true })),
  ];
}

/** Throws ShredwayError "config_invalid" if clients could not connect with it. */
function credentialsIn({ files, keyPem, certificatePem }: TlsMaterial): QuicheCredentials {
  const credentials = { keyPem, certificatePem };
  checkServerCredentials(credentials, `quic.tls: ${files.key} and ${files.certificate}`);
  return credentials;
}

/** Throws ShredwayError "config_invalid", and follows the files no longer then. */
function startCredentials(certificate: TlsCertificate | null, folder: string): QuicheCredentials {
  if (!certificate) return ensureQuicCertificate(folder);
  try {
    return credentialsIn(certificate.material);
  } catch (error) {
    certificate.close();
    throw error;
  }
}

/** Throws ShredwayError "config_invalid". */
function requireLibrary(): void {
  const problem = quicheProblem();
  if (problem === null) return;
  throw new ShredwayError(
    "config_invalid",
    `quic: requires the optional package @matrixai/quic: ${problem}; ${quicheHint}`,
  );
}

const noBytes = new Uint8Array(0);

/** Options in the form of a URL; the empty query is the usual one. */
const queries = {
  open: new Query(""),
  protected: new Query("mev-protect=true"),
  swqosOnly: new Query("swqos-only=true"),
  protectedSwqosOnly: new Query("mev-protect=true&swqos-only=true"),
} as const;

function queryOf(isProtected: boolean, isSwqosOnly: boolean): Query {
  if (isProtected) return isSwqosOnly ? queries.protectedSwqosOnly : queries.protected;
  return isSwqosOnly ? queries.swqosOnly : queries.open;
}

/** Most keys are allowed from every address, so the address is rarely parsed. */
function isAllowed(keyRing: KeyRing, key: ApiKey, address: string): boolean {
  return key.allowedRanges.length === 0 || keyRing.allows(key, parseAddress(address));
}

/** null: no section `quic`. Throws ShredwayError "quic_open" or "config_invalid". */
export function openQuic({
  config,
  gateway,
  keyRing,
  publicKeys,
  fastPath,
  clock,
  log,
}: QuicDependencies): QuicService | null {
  const { quic, data } = config;
  if (!quic) return null;
  requireLibrary();
  const secret = ensureQuicSecret(data.directory);
  const certificate = quic.tls
    ? new TlsCertificate(quic.tls, { clock, log, section: "quic" })
    : null;
  const credentials = startCredentials(certificate, data.directory);
  const fingerprint = fingerprintOf(credentials);
  log.info({ fingerprint }, "quic: identity of the service for clients that pin it (SHA-256)");
  const ingress = new QuicIngress({
    listeners: listenersOf(quic),
    settings: {
      connectionsMax: quic.connectionsMax,
      streamsMax: quic.streamsMax,
      streamTimeoutMs: quic.streamTimeoutMs,
      idleTimeoutMs: quic.idleSeconds * 1000,
      handshakesPerMinute: quic.handshakesPerMinute,
    },
    connectionsPerKeyMax: quic.connectionsPerKeyMax,
    credentials,
    secret,
    offers: fastPath && new StreamOffers(fastPath),
    clock,
    log,
    authenticate: (address, identity) => {
      const { callers } = gateway();
      return identity.kind === "publicKey"
        ? callers.authenticatePublicKey(address, identity.publicKey)
        : callers.authenticate(address, identity.text);
    },
    currentKey: ({ keyId, publicKey }, address) => {
      const key = publicKey ? publicKeys.find("tpu", publicKey) : keyRing.get(keyId, clock.nowNs());
      return key && isAllowed(keyRing, key, address) ? key : null;
    },
    submit: ({ key, bytes, takesBundles, isProtected, isSwqosOnly, receivedNs, offer }) =>
      gateway().answerStream({
        key,
        body: bytes,
        query: queryOf(isProtected, isSwqosOnly),
        takesBundles,
        receivedNs,
        ingress: "quic",
        fastPath: offer ? { connection: offer, head: noBytes, body: bytes } : undefined,
      }),
    rateLimited: (report) => gateway().rateLimited("quic", report),
  });
  certificate?.onChange((material) => ingress.identify(credentialsIn(material)));
  return {
    ingress,
    certificate,
    fingerprint,
    close: async () => {
      certificate?.close();
      await ingress.close();
    },
  };
}
