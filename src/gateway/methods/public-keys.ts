// getPublicKeys, registerPublicKey, removePublicKey: the Ed25519 public keys of an account.
//
// Called through method-table.ts. A caller can access only public keys of its own account. The scope that a
// call needs depends on the purpose of the key.

import type { RegisteredKey, RegisteredKeys } from "../../client/responses.ts";
import { publicKeyPurposes, type RegisteredPublicKey } from "../accounts/public-key-types.ts";
import {
  closed,
  described,
  enumOf,
  listOf,
  publicKey as publicKeySchema,
  schemaOf,
  string,
  time,
} from "../schema/json-schema.ts";
import { type ArgsOf, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { oneOf, optionsOf, requiredField, text } from "../schema/shapes.ts";
import { salesOf, timeText } from "./destinations.ts";
import { type Call, type MethodTable, method } from "./method.ts";

function factsOf({ dependencies }: Call, registered: RegisteredPublicKey): RegisteredKey {
  const { publicKey, purpose, keyId, registeredMs } = registered;
  return {
    publicKey,
    purpose,
    apiKey: keyId,
    state: dependencies.publicKeys.apiKeyOf(registered) ? "active" : "ended",
    registeredAt: timeText(registeredMs),
  };
}

function list(call: Call): RegisteredKeys {
  const { accountId } = call.key;
  const all = call.dependencies.publicKeys.ofAccount(accountId);
  return { account: accountId, publicKeys: all.map((each) => factsOf(call, each)) };
}

const registerParams = {
  registration: required(
    optionsOf("PublicKeyRegistration", {
      publicKey: requiredField(text(), "the Ed25519 public key in base58"),
      purpose: requiredField(
        oneOf(publicKeyPurposes),
        "tpu: submissions over QUIC (scope submit); shredstream: a ShredStream proxy (scope shreds)",
      ),
      expiresAt: requiredField(
        text(),
        "end of the signature's validity: a time in the next hour, in ISO 8601 and UTC",
      ),
      signature: requiredField(
        text(),
        "signature of the key over the text of docs/public-keys.md, in base58 or base64",
      ),
    }),
    "the public key and the proof of its possession",
  ),
};

async function register(
  call: Call,
  { registration }: ArgsOf<typeof registerParams>,
): Promise<RegisteredKey> {
  const { publicKeys } = call.dependencies;
  // Without the sale of shreds no account has a tier, so the key could never receive anything.
  if (registration.purpose === "shredstream") salesOf(call);
  return factsOf(call, await publicKeys.register(call.key, registration));
}

const removeParams = {
  publicKey: required(
    text({ examples: [samples.publicKey] }),
    "one of the account's public keys, in base58",
  ),
};

async function remove(call: Call, args: ArgsOf<typeof removeParams>): Promise<true> {
  await call.dependencies.publicKeys.remove(call.key, args.publicKey);
  return true;
}

const registeredSchema = closed<RegisteredKey>("RegisteredKey", {
  publicKey: publicKeySchema,
  purpose: enumOf(publicKeyPurposes),
  apiKey: described("id of the API key whose rights and limits it has", string),
  state: described(
    "ended: its API key was revoked, has expired or lacks the scope",
    enumOf(["active", "ended"]),
  ),
  registeredAt: time,
});

const sample = {
  publicKey: samples.publicKey,
  purpose: "tpu",
  apiKey: samples.keyId,
  state: "active",
  registeredAt: samples.time,
} as const;

const scopes = ["submit", "shreds"] as const;

export const publicKeyMethods: MethodTable = {
  getPublicKeys: method({
    scopes,
    summary: "Returns the account's id and its registered public keys, oldest first.",
    params: {},
    result: {
      name: "publicKeys",
      schema: closed<RegisteredKeys>("RegisteredKeys", {
        account: described("id of the account, for the text that the key signs", string),
        publicKeys: listOf(registeredSchema),
      }),
    },
    errors: [],
    example: { params: [], result: { account: samples.account, publicKeys: [sample] } },
    run: list,
  }),
  registerPublicKey: method({
    scopes,
    summary: "Registers an Ed25519 public key, which then acts for the API key of this call.",
    params: registerParams,
    result: { name: "publicKey", schema: registeredSchema },
    errors: ["registration_off", "signature_invalid", "public_key_refused", "store_failed"],
    example: {
      params: [
        {
          publicKey: samples.publicKey,
          purpose: "tpu",
          expiresAt: samples.laterTime,
          signature: samples.signature,
        },
      ],
      result: sample,
    },
    run: register,
  }),
  removePublicKey: method({
    scopes,
    summary: "Removes a public key; its connections are closed within a second.",
    params: removeParams,
    result: { name: "isRemoved", schema: schemaOf<true>({ type: "boolean", const: true }) },
    errors: ["public_key_unknown", "store_failed"],
    example: { params: [samples.publicKey], result: true },
    run: remove,
  }),
};
