// getRegistrations: what became of the tips that an account registered.
//
// Called through table.ts. Only of the caller's own account.

import { ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../json-rpc/json-text.ts";
import type { Registrar, Registration } from "../../tips/registration-types.ts";
import type { Call, MethodTable } from "../method.ts";
import { Config, invalid } from "../params.ts";

const limitMax = 1000;
const limitUsual = 100;

/** Throws "registration_off". */
export function registrarOf({ parts }: Pick<Call, "parts">): Registrar {
  if (parts.shreds) return parts.shreds.registrar;
  throw new ShredwayError(
    "registration_off",
    "expected a service that sells shreds (tips.shredAddresses), got one that does not",
  );
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

function registrationJson(registration: Registration): object {
  const { signature, state, reason, slot, lamports, countedLamports } = registration;
  const { registeredMs, settledMs } = registration;
  return {
    signature,
    state,
    reason,
    slot,
    lamports,
    countedLamports,
    registeredAt: isoTime(registeredMs),
    settledAt: settledMs === null ? null : isoTime(settledMs),
    registeredMs,
  };
}

async function registrations(call: Call, [given]: readonly Json[]): Promise<object[]> {
  const registrar = registrarOf(call);
  const config = new Config("params[0]", given);
  const beforeMs = config.count("beforeMs", Number.MAX_SAFE_INTEGER);
  const limit = config.count("limit", limitMax) ?? limitUsual;
  if (limit === 0) throw invalid("params[0].limit", `an integer from 1 to ${limitMax}`, limit);
  const found = await registrar.ofAccount(call.key.accountId, beforeMs, limit);
  return found.map(registrationJson);
}

export const registrationMethods: MethodTable = {
  getRegistrations: { scopes: ["shreds"], run: registrations },
};
