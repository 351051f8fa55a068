// Response schemas have exactly the fields of their types; the compiler checks the lines marked
// below.

import { describe, expect, it } from "vitest";
import type { NextAltValidator, RegistrationReceipt } from "../../../src/client/responses.ts";
import {
  closed,
  described,
  enumOf,
  lamports,
  listOf,
  number,
  orNull,
  publicKey,
  type SchemaOf,
  slot,
  string,
} from "../../../src/gateway/schema/json-schema.ts";

type Next = NextAltValidator<bigint | number>;

describe("closed", () => {
  it("describes every field of a type and allows no other", () => {
    const schema: SchemaOf<Next> = closed<Next>("Next", {
      pubkey: publicKey,
      leader_slot: described("a slot", slot),
      context_slot: slot,
    });
    expect(schema.required).toEqual(["pubkey", "leader_slot", "context_slot"]);
    expect(schema.additionalProperties).toBe(false);
  });

  it("does not require optional fields", () => {
    type Receipt = Pick<RegistrationReceipt, "accepted"> & { readonly note?: string };
    const fields = { accepted: listOf(string), note: string };
    expect(closed<Receipt>("Receipt", fields, ["note"]).required).toEqual(["accepted"]);
  });

  it("does not compile if a field is missing, unknown or of another type", () => {
    const pubkey = publicKey;
    const schemas = [
      // @ts-expect-error -- context_slot is missing
      closed<Next>("Missing", { pubkey, leader_slot: slot }),
      // @ts-expect-error -- NextAltValidator has no field of this name
      closed<Next>("Unknown", { pubkey, leader_slot: slot, context_slot: slot, lamports }),
      // @ts-expect-error -- pubkey is a string
      closed<Next>("Number", { pubkey: number, leader_slot: slot, context_slot: slot }),
      // @ts-expect-error -- pubkey is never null
      closed<Next>("Null", { pubkey: orNull(string), leader_slot: slot, context_slot: slot }),
      // @ts-expect-error -- the type has fewer words
      closed<{ readonly word: "a" }>("Words", { word: enumOf(["a", "b"]) }),
    ];
    expect(schemas.map(({ title }) => title)).toEqual([
      "Missing",
      "Unknown",
      "Number",
      "Null",
      "Words",
    ]);
  });
});
