// Records which transactions a call submits, for its receipt.
//
// Used for calls with a receipt only, in place of the submissions themselves; it passes everything on.

import type { Submissions } from "../submission/types.ts";

interface Recorder {
  readonly submissions: Submissions;
  /** Signatures in the order of the call. */
  readonly signatures: readonly string[];
}

export function recorderOf(submissions: Submissions): Recorder {
  const signatures: string[] = [];
  return {
    signatures,
    submissions: {
      submit: (request) => {
        signatures.push(...request.transactions.map(({ signature }) => signature));
        return submissions.submit(request);
      },
      submitPair: (first, second) => {
        for (const { transactions } of [first, second]) {
          signatures.push(...transactions.map(({ signature }) => signature));
        }
        return submissions.submitPair(first, second);
      },
      statuses: (accountId, asked) => submissions.statuses(accountId, asked),
      bundles: (accountId, ids) => submissions.bundles(accountId, ids),
      subscribe: (accountId, listener) => submissions.subscribe(accountId, listener),
    },
  };
}
