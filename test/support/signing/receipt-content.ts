// The content of a receipt, for tests that sign and verify it.

/** `end`: the member `end` of its transaction. */
export function receiptContent(end: Readonly<Record<string, unknown>> | null = null) {
  return {
    statement: "final",
    iat: 1_763_724_000,
    time: "2026-11-21T12:00:00.000Z",
    slot: 7,
    method: "sendTransaction",
    bundleId: null,
    transactions: [
      {
        signature: "5x",
        receivedAt: "2026-11-21T11:59:59.000Z",
        tipLamports: 10_000,
        routes: ["a", "b"],
        held: null,
        end,
      },
    ],
  };
}
