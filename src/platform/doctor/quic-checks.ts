// The checks of the QUIC ingress, except its ports and the files of `quic.tls`. Pure.
//
// Called by src/tools/commands/doctor.ts with the facts of quic-facts.ts.

import { about, type Finding, type Found, withMeasure } from "./finding.ts";
import { sysctl } from "./kernel-checks.ts";
import { nftRemedy } from "./nft-rules.ts";
import type { QuicCertificateFact, QuicFacts } from "./quic-facts.ts";

export function checkQuic(
  facts: QuicFacts | null,
  certificate: QuicCertificateFact | null,
): Finding[] {
  if (!facts) return [];
  const all = [
    ...buffers(facts),
    ...facts.ports.flatMap((port) => firewall(port, facts.ruleset)),
    ...(certificate ? [identity(certificate)] : []),
  ];
  return all.map(withMeasure);
}

function buffers({ granted, limits, wantedBytes }: QuicFacts): Found[] {
  const { ok, warn } = about(
    "quic-buffers",
    "Packets of clients wait in these buffers; packets that find them full are lost and sent again later.",
  );
  if (!granted)
    return [warn("no UDP socket could be opened", "ulimit -n, and the log of the kernel")];
  const directions = [
    {
      name: "receive",
      bytes: granted.receiveBytes,
      key: "net.core.rmem_max",
      limit: limits.receiveBytes,
    },
    { name: "send", bytes: granted.sendBytes, key: "net.core.wmem_max", limit: limits.sendBytes },
  ];
  return directions.map(({ name, bytes, key, limit }) =>
    bytes >= wantedBytes
      ? ok(`${name} buffer: ${bytes} bytes per socket`)
      : warn(
          `${name} buffer: a socket gets ${bytes} bytes instead of ${wantedBytes} (${key})`,
          sysctl(key, limit),
        ),
  );
}

function firewall(port: number, ruleset: string | null): Found[] {
  const { ok, warn } = about(
    "quic-firewall",
    "Clients on other machines send UDP packets to this port.",
  );
  if (ruleset === null) return [];
  const remedy = nftRemedy(ruleset, port);
  if (remedy === null) return [ok(`no rule of nftables that drops UDP port ${port} was found`)];
  return [warn(`nftables drops incoming packets, and no rule accepts UDP port ${port}`, remedy)];
}

function identity({ path, fingerprint, error }: QuicCertificateFact): Found {
  const { ok, fail } = about(
    "quic-certificate",
    "Clients that pin the certificate connect only to this fingerprint.",
  );
  if (error !== null)
    return fail(error, `move ${path} away; the next start creates a new certificate`);
  if (fingerprint === null)
    return ok(`${path} does not exist yet; the service creates it at startup`);
  return ok(`${path}: SHA-256 ${fingerprint}`);
}
