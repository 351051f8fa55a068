// Signatures in the stores: 64 bytes in the database, base58 everywhere else.

export interface SignatureCodec {
  /** undefined for an invalid text. */
  decode(text: string): Uint8Array | null | undefined;
  encode(bytes: Uint8Array): string;
}
