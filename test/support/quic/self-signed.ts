// A self-signed certificate for 127.0.0.1, with its key. Valid until 2126; only for tests.

const keyLines = [
  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgUhcdxyDLa3CKVtMO",
  "0qpLDXosp8EYLSItgnPmY4VCcV6hRANCAAQD4ecVJaYssDd+saqjcVi48e9kpgBT",
  "hyhJqoxaozT3sOIlT7maKt+pHaW+MI9qrZQDyaL/K3gefOuQRG7Paegm",
];
const certificateLines = [
  "MIIBjzCCATagAwIBAgIUYKcJaXEcllwV1ywSJ+tTQ+a2wLowCgYIKoZIzj0EAwIw",
  "FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEyMTEyNTEyMloYDzIxMjYxMDI4",
  "MTI1MTIyWjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO",
  "PQMBBwNCAAQD4ecVJaYssDd+saqjcVi48e9kpgBThyhJqoxaozT3sOIlT7maKt+p",
  "HaW+MI9qrZQDyaL/K3gefOuQRG7Paegmo2QwYjAdBgNVHQ4EFgQUKcQ6mi//fXlW",
  "FD9LpVc9M5GXDhkwHwYDVR0jBBgwFoAUKcQ6mi//fXlWFD9LpVc9M5GXDhkwDwYD",
  "VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0cAMEQC",
  "IFMNkooGZps3d2akB4fmHfmmbcvveel6lyAD2aiJYtX2AiBAAycLf4GtfPUS9lYc",
  "UHlnKns1RVm6nTg3VrqLUkBoFA==",
];

function pem(kind: string, lines: readonly string[]): string {
  return [`-----BEGIN ${kind}-----`, ...lines, `-----END ${kind}-----`, ""].join("\n");
}

export const selfSignedKey = pem("PRIVATE KEY", keyLines);
export const selfSignedCertificate = pem("CERTIFICATE", certificateLines);
