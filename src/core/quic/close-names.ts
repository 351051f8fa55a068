// Stable names of connection ends, for counters, logs and timelines. Pure.
//
// Application codes are those of the validators' streamer (November 2026), transport codes those of
// RFC 9000 20.1, TLS alerts (from 0x100) those of RFC 8446 6. The remote side chooses the codes;
// unknown codes are named by their number.

interface CloseCode {
  readonly isApp: boolean;
  readonly errorCode: number;
}

const applicationNames: Readonly<Record<number, string>> = {
  0: "closed",
  1: "dropped",
  2: "disallowed",
  3: "exceed_max_stream_count",
  4: "too_many",
  5: "invalid_stream",
};

const transportNames: readonly string[] = [
  "closed",
  "internal_error",
  "connection_refused",
  "flow_control_error",
  "stream_limit_error",
  "stream_state_error",
  "final_size_error",
  "frame_encoding_error",
  "transport_parameter_error",
  "connection_id_limit_error",
  "protocol_violation",
  "invalid_token",
  "application_error",
  "crypto_buffer_exceeded",
  "key_update_error",
  "aead_limit_reached",
  "no_viable_path",
];

const alertNames: Readonly<Record<number, string>> = {
  40: "handshake_failure",
  42: "bad_certificate",
  43: "unsupported_certificate",
  44: "certificate_revoked",
  45: "certificate_expired",
  46: "certificate_unknown",
  47: "illegal_parameter",
  48: "unknown_ca",
  49: "access_denied",
  50: "decode_error",
  51: "decrypt_error",
  70: "protocol_version",
  80: "internal_error",
  109: "missing_extension",
  116: "certificate_required",
  120: "no_application_protocol",
};

const firstAlert = 0x100;
const lastAlert = 0x1ff;

export function closeName({ isApp, errorCode }: CloseCode): string {
  if (isApp) return applicationNames[errorCode] ?? `application_${errorCode}`;
  if (errorCode >= firstAlert && errorCode <= lastAlert) {
    const alert = errorCode - firstAlert;
    return `tls_${alertNames[alert] ?? alert}`;
  }
  return transportNames[errorCode] ?? `transport_${errorCode}`;
}

/** Ends after which an immediate reconnection would cause further refusals. */
const refusals: ReadonlySet<string> = new Set([
  "dropped",
  "disallowed",
  "exceed_max_stream_count",
  "too_many",
  "invalid_stream",
  "connection_refused",
]);

export function isRefusal(name: string): boolean {
  return refusals.has(name) || name.startsWith("tls_") || name.startsWith("application_");
}
