// The folders of the core, which the addon, the native tests and the benchmark share.

export const coreFolders = [
  "system",
  "crypto",
  "shred",
  "net",
  "clone",
  "xdp",
  "transaction",
  "verify",
  "quic",
  "submission",
  "deshred",
  "stream",
  "relay",
];
