// getRegistrations: the state of the tips that an account registered.
//
// Called through method-table.ts. A caller sees only tips of its own account.

import type { Registration, WrittenInteger } from "../../client/responses.ts";
import { ShredwayError } from "../../core/errors.ts";
import {
  type Registration as KeptRegistration,
  proofKinds,
  type Registrar,
  registrationReasons,
  registrationStates,
} from "../../shreds/registrations/registration-types.ts";
import {
  closed,
  described,
  enumOf,
  lamports,
  listOf,
  orNull,
  signatureText,
  time,
  u64,
  wholeNumber,
} from "../schema/json-schema.ts";
import { type ArgsOf, optional } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { count, field, optionsOf, positive } from "../schema/shapes.ts";
import { type Call, type MethodTable, method } from "./method.ts";

type Answer = Registration<WrittenInteger>;

const limitMax = 1000;
const limitDefault = 100;

/** Throws ShredwayError "registration_off". */
export function registrarOf({ dependencies }: Pick<Call, "dependencies">): Registrar {
  if (dependencies.shreds) return dependencies.shreds.registrar;
  throw new ShredwayError(
    "registration_off",
    "this service does not sell shreds: tips.shredAddresses is not configured",
  );
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

function registrationJson(registration: KeptRegistration): Answer {
  const { registeredMs, settledMs } = registration;
  return {
    signature: registration.signature,
    state: registration.state,
    reason: registration.reason,
    slot: registration.slot,
    lamports: registration.lamports,
    countedLamports: registration.countedLamports,
    registeredAt: isoTime(registeredMs),
    settledAt: settledMs === null ? null : isoTime(settledMs),
    proof: registration.proof,
    registeredMs,
  };
}

const registrationSchema = closed<Answer>("Registration", {
  signature: signatureText,
  state: enumOf(registrationStates),
  reason: orNull({ ...enumOf(registrationReasons), description: "why the tip was dropped" }),
  slot: described("slot given at registration", u64),
  lamports: described("amount that its instructions pay", lamports),
  countedLamports: orNull(described("amount that counts; null: it does not count", lamports)),
  registeredAt: described("first registration of the tip, by any account", time),
  settledAt: orNull(described("when it counted or was dropped for this account", time)),
  proof: orNull(
    described(
      "how the payer assigned the tip to the account; null: not at all, and a proof for another account takes it over",
      enumOf(proofKinds),
    ),
  ),
  registeredMs: described(
    "pass it as beforeMs to get the next page",
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
  ),
});

const params = {
  range: optional(
    optionsOf("RegistrationRange", {
      beforeMs: field(count(Number.MAX_SAFE_INTEGER), {
        description:
          "only tips registered before this time, in milliseconds since 1970; default: the newest tips",
        absent: null,
      }),
      limit: field(positive(limitMax), {
        description:
          "page size; tips of the same millisecond stay on one page, so a page may be larger",
        absent: limitDefault,
        fallback: limitDefault,
      }),
    }),
    "which entries to return",
  ),
};

async function registrations(call: Call, { range }: ArgsOf<typeof params>): Promise<Answer[]> {
  const { beforeMs, limit } = range;
  const found = await registrarOf(call).ofAccount(call.key.accountId, beforeMs, limit);
  return found.map(registrationJson);
}

export const registrationMethods: MethodTable = {
  getRegistrations: method({
    scopes: ["shreds"],
    summary: "Returns the registered tips of the account with their states, newest first.",
    available: registrarOf,
    params,
    result: { name: "registrations", schema: listOf(registrationSchema) },
    errors: ["registration_off", "store_failed"],
    example: {
      params: [{ limit: 1 }],
      result: [
        {
          signature: samples.signature,
          state: "counted",
          reason: null,
          slot: samples.slot,
          lamports: 250_000_000,
          countedLamports: 250_000_000,
          registeredAt: samples.time,
          settledAt: samples.laterTime,
          proof: "memo",
          registeredMs: 1_795_262_400_123,
        },
      ],
    },
    run: registrations,
  }),
};
