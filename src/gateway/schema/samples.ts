// Sample values for the examples in the gateway's documents.
//
// Used by methods/* and description/*. The transactions are validly signed, but with unused keys
// and an invalid blockhash: they can never land.

export const samples = {
  transaction:
    "AR1k1dhIpfK+F32o5UeRedWj+iT37s4iMB6VCZJruJXI51jbtHa6L+YlYihk+EXG6ijMwenTOqRdsPet8e5/DAkBAAEDP4ROsP3O0PMGc7QAdve8" +
    "wUuNX09xt/qTTCffV08dVrToa9YbhOF1vLOkvV8h5RLZyIhRmTSM7ZtZ9lPw9fe7JQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAOVv3" +
    "J/mqxegJEVkQc/z5yCb0KIBBMcoIm+ujhpQhdJoBAgIAAQwCAAAAECcAAAAAAAA=",
  secondTransaction:
    "ASdyvW6aoA3ovK2uzllzmLPC9Rb0XaxLrk4S5HFxfmyef6Pti+P7Bd1hWN1iThZh3TWXtJL21mROOOk2s9kH0wkBAAEDP4ROsP3O0PMGc7QAdve8" +
    "wUuNX09xt/qTTCffV08dVrToa9YbhOF1vLOkvV8h5RLZyIhRmTSM7ZtZ9lPw9fe7JQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAOVv3" +
    "J/mqxegJEVkQc/z5yCb0KIBBMcoIm+ujhpQhdJoBAgIAAQwCAAAAIE4AAAAAAAA=",
  signature:
    "b5x2PCbheUrNJoGNEJv4xpbTTqi3ZeEQHq2pSQk95StfVyxPsBGK91dsDeCq1dBa6PeQPrqvmWLnxYchFH6H2et",
  secondSignature:
    "nkB3Ks13A1SdfgFMhDng4J4xDFRH871zytjzqXAv9JnwygMVcbtPKfkoZpb7CAdyL6vMhJ6RwgRJUduZT1htBxt",
  receipt:
    "eyJhbGciOiJFZERTQSIsImtpZCI6ImRxNFJWMG1xdTBoLVAyWTA3ejdEQUdTaE1ab08wV2VxUExwZGNURG5SMWMiLCJ0eXAiOiJzaHJlZHdheS" +
    "1yZWNlaXB0In0.eyJzdGF0ZW1lbnQiOiJmaW5hbCIsImlhdCI6MTc5NTI2MjQwMCwidGltZSI6IjIwMjYtMTEtMjFUMTI6MDA6MDAuOTM1WiIs" +
    "InNsb3QiOjMxNDE1OTIsIm1ldGhvZCI6InNlbmRUcmFuc2FjdGlvbiIsImJ1bmRsZUlkIjpudWxsLCJ0cmFuc2FjdGlvbnMiOlt7InNpZ25hdH" +
    "VyZSI6ImI1eDJQQ2JoZVVyTkpvR05FSnY0eHBiVFRxaTNaZUVRSHEycFNRazk1U3RmVnl4UHNCR0s5MWRzRGVDcTFkQmE2UGVRUHJxdm1XTG54" +
    "WWNoRkg2SDJldCIsInJlY2VpdmVkQXQiOiIyMDI2LTExLTIxVDEyOjAwOjAwLjEyM1oiLCJ0aXBMYW1wb3J0cyI6MjAwMDAsInJvdXRlcyI6Wy" +
    "JwYXJ0bmVyLTEiXSwiaGVsZCI6bnVsbCwiZW5kIjp7InN0YXRlIjoibGFuZGVkIiwiYXQiOiIyMDI2LTExLTIxVDEyOjAwOjAwLjkzNVoiLCJy" +
    "ZWFzb24iOiJjb25maXJtZWQiLCJzbG90IjozMTQxNTkyLCJlcnIiOm51bGwsInNpYmxpbmciOm51bGx9fV19.B-qSGrc9Tj7xit680e4ccvJZE" +
    "3vFoao2b2PGYQDjm3bOObsei4QScIZEZ0vdogkK0vxrc0yxWfPTe23i-17vCA",
  bundleId: "3f1c0d9a5be87246aa11e0c4d2937f685b0e9c13a4d7f2865e1b8c90d3a4f576",
  tipAddress: "GeGxW21zLZ6yM1RcY3J4PRxvtMvqEeLuWWEGgQHauR2U",
  shredTipAddress: "AhXfBPq5QYwNcMPZsmDXJ7LgHxYF1DR3HDLs589MuBjG",
  leader: "2HYjVUJXP84ADsQxATuR4Kbcewt19tmSoHBeKzrTzJZ7",
  nonce: "96GzYFvs4dEeswTaQFQhvbGi6NHUcNHhEgXnPrRjyF2s",
  nonceAccount: "Gvpx6PYRSGyHh7MgkwNeBcK2g3T7Xzd2u1atWcgUTN3y",
  nonceAuthority: "FLtqVKMdPvSi138yUVLfweH77Z1VwL7DNi6nLniFGzHU",
  publicKey: "4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS",
  keyId: "k_4f1a09c2d3e5",
  account: "a_4f1a09c2d3e5",
  region: "frankfurt",
  destination: "d_4f1a09c2d3e5",
  address: "192.0.2.10:9001",
  token: "6b2f0c8e91d347a5b0c3d2e1f4a59687",
  slot: 3_141_592,
  time: "2026-11-21T12:00:00.123Z",
  laterTime: "2026-11-21T12:00:00.935Z",
  nextDay: "2026-11-22T12:00:00.123Z",
} as const;
