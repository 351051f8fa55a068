// Signatures as the stores write them: 64 bytes in the database, base58 everywhere else.

export interface SignatureCodec {
  /** Nothing when the text is none. */
  decode(text: string): Uint8Array | null | undefined;
  encode(bytes: Uint8Array): string;
}
