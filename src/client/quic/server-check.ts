// Decides whether the certificate of a service is the expected one, before the API key is sent.
//
// In TLS 1.3 the client sends its certificate, which contains the API key, after it has the server's.
// client-connection.ts asks between these two, so that another server never receives the key.

import { createHash, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { rootCertificates } from "node:tls";
import { isLoopbackHost } from "../../core/addresses/loopback-host.ts";
import type { ServerIdentity } from "./options.ts";

export interface ServerCheck {
  /** Authorities for TLS in PEM; null: TLS accepts every certificate. */
  readonly authorities: string | null;
  /** Name that TLS checks in the certificate; null: none. */
  readonly serverName: string | null;
  /** The reason to reject the certificate (DER); null: it is accepted. */
  readonly refusal: (certificate: Uint8Array | undefined) => string | null;
}

const fingerprintBytes = 32;

/** SHA-256 in hex, in pairs with colons, as openssl prints it. */
export function fingerprintOf(certificate: Uint8Array): string {
  const hex = createHash("sha256").update(certificate).digest("hex").toUpperCase();
  return hex.match(/../g)?.join(":") ?? "";
}

function pinned(fingerprint: string): ServerCheck {
  const expected = fingerprint.replaceAll(":", "").toUpperCase();
  if (expected.length !== 2 * fingerprintBytes || !/^[0-9A-F]+$/.test(expected)) {
    throw new TypeError(
      `server.fingerprint: expected SHA-256 in hex (64 digits), got ${JSON.stringify(fingerprint.slice(0, 100))}`,
    );
  }
  return {
    authorities: null,
    serverName: null,
    refusal: (certificate) => {
      const got = certificate ? fingerprintOf(certificate) : "no certificate";
      if (got.replaceAll(":", "") === expected) return null;
      return `expected the fingerprint ${fingerprint}, got ${got}`;
    },
  };
}

function byAuthorities(authorities: string, host: string): ServerCheck {
  const isAddress = isIP(host) !== 0;
  return {
    authorities,
    serverName: isAddress ? null : host,
    // TLS compares names only.
    refusal: (certificate) => {
      if (!isAddress) return null;
      const names = certificate && new X509Certificate(certificate);
      if (names?.checkIP(host) !== undefined) return null;
      return `expected a certificate for the address ${host}`;
    },
  };
}

/** `host` without brackets. Throws TypeError. */
export function serverCheckOf(identity: ServerIdentity | undefined, host: string): ServerCheck {
  if (identity && "fingerprint" in identity) return pinned(identity.fingerprint);
  if (identity && "authorities" in identity) return byAuthorities(identity.authorities, host);
  if (identity || isLoopbackHost(host)) {
    return { authorities: null, serverName: null, refusal: () => null };
  }
  return byAuthorities(rootCertificates.join("\n"), host);
}
