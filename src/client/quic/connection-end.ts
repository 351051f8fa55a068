// The end of a connection: its name, and the error of the submissions that it interrupts. Pure.
//
// Names of closes by the service are those of docs/quic.md; others are those of core/quic/close-names.ts.

import { closeName } from "../../core/quic/close-names.ts";
import type { CloseCause, Dialect } from "../../core/quic/dialects.ts";
import type { QuicheConnection } from "../../core/quic/quiche.ts";
import { endNameOf } from "../../core/quic/quiche-calls.ts";
import { ShredwayCallError } from "../error.ts";

export interface ConnectionEnd {
  readonly name: string;
  /** Close code of the service; null: it sent none. */
  readonly code: number | null;
  readonly message: string;
}

const names: Readonly<Record<CloseCause, string>> = {
  closed: "shutdown",
  unauthorized: "unauthorized",
  connection_limit: "connection_limit",
  forbidden: "forbidden",
  excess: "excess",
};
const causes: readonly CloseCause[] = [
  "unauthorized",
  "forbidden",
  "connection_limit",
  "excess",
  "closed",
];

/** Ends after which an immediate connection would be refused again. */
const refusals: ReadonlySet<string> = new Set([
  "unauthorized",
  "connection_limit",
  "forbidden",
  "excess",
  "certificate_untrusted",
  "protocol_refused",
  "certificate_required",
]);

/** Ends that this side found, and those of TLS with the reason for programs. */
const tlsNames: Readonly<Record<string, string>> = {
  tls_no_application_protocol: "protocol_refused",
  tls_certificate_required: "certificate_required",
  here_tls_unknown_ca: "certificate_untrusted",
  here_tls_bad_certificate: "certificate_untrusted",
  here_tls_certificate_expired: "certificate_untrusted",
  here_tls_certificate_unknown: "certificate_untrusted",
};
const tlsTexts: Readonly<Record<string, string>> = {
  protocol_refused: "the service does not know the dialect",
  certificate_required: "the service requires a certificate of the client",
  certificate_untrusted: "no accepted authority has signed it for this name, or it has expired",
};

export function isRefusal({ name }: ConnectionEnd): boolean {
  return refusals.has(name);
}

export function endHere(name: string, message: string): ConnectionEnd {
  return { name, code: null, message };
}

/** On "solana-tpu", two causes share a code; the text begins with the cause. */
function causeOf(code: number, text: string, { closeCodes }: Dialect): CloseCause | undefined {
  const possible = causes.filter((cause) => closeCodes[cause] === code);
  return possible.find((cause) => text.startsWith(cause)) ?? possible[0];
}

/** The end of a connection that quiche reports as closed or draining. */
export function endOf(quic: QuicheConnection, dialect: Dialect): ConnectionEnd {
  const error = quic.peerError();
  if (error?.isApp) {
    const text = Buffer.from(error.reason).toString();
    const cause = causeOf(error.errorCode, text, dialect);
    const name = cause ? names[cause] : closeName(error);
    return { name, code: error.errorCode, message: text.replace(/^\w+: /, "") };
  }
  const raw = endNameOf(quic);
  const name = tlsNames[raw] ?? raw;
  return { name, code: error?.errorCode ?? null, message: tlsTexts[name] ?? "" };
}

/** Remedies for refusals, appended to their message. */
const remedies: Readonly<Record<string, string>> = {
  certificate_untrusted:
    "; compare the fingerprint with the one that `shredway doctor` or the first screen shows, and pass it as " +
    "server.fingerprint",
};

/** The error of a submission, or of the first attempt to connect, that ended like this. */
export function errorOfEnd(end: ConnectionEnd, address: string): ShredwayCallError {
  const { name, message } = end;
  const what = message === "" ? name : message;
  if (isRefusal(end)) {
    const subject = name === "certificate_untrusted" ? `certificate of ${address}` : address;
    const remedy = remedies[name] ?? "";
    return new ShredwayCallError(`${name}: ${subject}: ${what}${remedy}`, { reason: name });
  }
  return new ShredwayCallError(
    `unreachable: expected a response from ${address}, got none: the connection ended: ${what}`,
    { reason: "unreachable" },
  );
}
