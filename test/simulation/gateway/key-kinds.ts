// The keys with which customers call the gateway.

/**
 * reader: its scopes do not allow to submit. revoked: it was created and revoked. unknown: it was never created.
 * none: the request has no key.
 */
export const keyKinds = ["own", "reader", "revoked", "unknown", "none"] as const;
export type KeyKind = (typeof keyKinds)[number];
