// Opens the senders of a plan, and finds the account of each tip.

import { ShredwayError } from "../../core/errors.ts";
import { parsePubkey } from "../../core/primitives.ts";
import { openQuicSender, openServiceSender } from "./client-sender.ts";
import { HttpSender } from "./http-sender.ts";
import type { SenderPlan } from "./plan.ts";
import type { Sender } from "./sender.ts";

export interface OpenSender {
  readonly plan: SenderPlan;
  readonly sender: Sender;
  /** Base58; null: its transactions have no tip. */
  readonly tipTo: string | null;
}

async function openOne(plan: SenderPlan, timeoutMs: number): Promise<Sender> {
  const { dialect } = plan;
  if (dialect === "quic") return openQuicSender(plan, timeoutMs);
  if (dialect === "shredway") return openServiceSender(plan, timeoutMs);
  return new HttpSender({ ...plan, dialect }, timeoutMs);
}

async function tipAccountOf(plan: SenderPlan, sender: Sender): Promise<string | null> {
  const { name, tipTo, tipLamports } = plan;
  if (tipTo !== null || tipLamports === 0n) return tipTo;
  const accounts = await sender.tipAccounts().catch(() => []);
  const [first] = accounts;
  if (first !== undefined) return parsePubkey(first);
  throw new ShredwayError(
    "rpc_failed",
    `sender ${name}: it states no tip accounts; expected tip-to=ADDRESS for its tip of ${tipLamports} lamports`,
  );
}

/** Throws ShredwayError "rpc_failed" if one of them is unusable; then none stays open. */
export async function openSenders(
  plans: readonly SenderPlan[],
  timeoutMs: number,
): Promise<OpenSender[]> {
  const opened: OpenSender[] = [];
  try {
    for (const plan of plans) {
      const sender = await openOne(plan, timeoutMs);
      opened.push({ plan, sender, tipTo: null });
      await sender.warmUp();
      opened[opened.length - 1] = { plan, sender, tipTo: await tipAccountOf(plan, sender) };
    }
    return opened;
  } catch (error) {
    for (const { sender } of opened) sender.close();
    throw error;
  }
}
