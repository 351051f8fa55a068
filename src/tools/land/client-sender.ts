// Senders of this service's kind, by the typed clients for HTTP and QUIC.
//
// The QUIC client also speaks the protocols of other services (`alpn=`). Protocols without responses count a
// transaction as accepted when it was delivered.

import { ShredwayCallError, ShredwayClient } from "../../client/index.ts";
import { connectQuic } from "../../client/quic/index.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { findDialect } from "../../core/quic/dialects.ts";
import type { SenderPlan } from "./plan.ts";
import type { Sender, SubmissionResult } from "./sender.ts";

const withoutResponse: readonly string[] = ["timeout", "unreachable"];

async function resultOf(submission: Promise<string>, signature: string): Promise<SubmissionResult> {
  try {
    const answered = await submission;
    if (answered === signature) return { error: null, hasResponse: true };
    const message = `expected the signature, got ${answered.slice(0, 100)}`;
    return { error: { reason: "answer_invalid", message }, hasResponse: true };
  } catch (error) {
    const reason = error instanceof ShredwayCallError ? error.reason : "unknown";
    const message = messageOf(error).slice(0, 200);
    return { error: { reason, message }, hasResponse: !withoutResponse.includes(reason) };
  }
}

function unusable({ name }: SenderPlan, error: unknown): ShredwayError {
  return new ShredwayError("rpc_failed", `sender ${name}: ${messageOf(error)}`);
}

/** The gateway of this service over HTTP. Throws ShredwayError "rpc_failed" for an unusable URL. */
export function openServiceSender(plan: SenderPlan, timeoutMs: number): Sender {
  const { url, apiKey, maxRetries, switches } = plan;
  const client = new ShredwayClient({
    url: url.href,
    timeoutMs,
    ...(apiKey !== null && { apiKey }),
  });
  const options = {
    encoding: "base64" as const,
    mevProtect: switches.includes("mev-protect"),
    swqosOnly: switches.includes("swqos-only"),
    ...(maxRetries !== null && { maxRetries }),
  };
  return {
    warmUp: async () => {
      try {
        await client.getHealth();
      } catch (error) {
        // An unhealthy service still answers, and may accept transactions.
        if (error instanceof ShredwayCallError && !withoutResponse.includes(error.reason)) return;
        throw unusable(plan, error);
      }
    },
    tipAccounts: () => client.getTipAccounts(),
    prepare: (wire, signature) => () => resultOf(client.sendTransaction(wire, options), signature),
    close: () => undefined,
  };
}

/** Connects. Throws ShredwayError "rpc_failed". */
export async function openQuicSender(plan: SenderPlan, timeoutMs: number): Promise<Sender> {
  const { url, apiKey, switches, fingerprint, alpn } = plan;
  const dialect = (["shredway-tpu", "astralane-tpu", "lunar-lander-tpu"] as const).find(
    (each) => each === alpn,
  );
  const server = switches.includes("unverified")
    ? ({ unverified: true } as const)
    : fingerprint === null
      ? undefined
      : { fingerprint };
  try {
    const client = await connectQuic({
      address: url.host,
      timeoutMs,
      mevProtect: switches.includes("mev-protect"),
      ...(apiKey !== null && { apiKey }),
      ...(dialect && { dialect }),
      ...(server && { server }),
    });
    const hasResponses = findDialect(alpn ?? "shredway-tpu")?.hasResponses === true;
    return {
      warmUp: () => Promise.resolve(),
      tipAccounts: () => Promise.resolve([]),
      prepare: (wire, signature) => async () => {
        const result = await resultOf(client.send(wire), signature);
        return hasResponses || result.error ? result : { ...result, hasResponse: false };
      },
      close: () => client.close(),
    };
  } catch (error) {
    throw unusable(plan, error);
  }
}
