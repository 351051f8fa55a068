// Instructions as the jsonParsed encoding reads and shows them. Only types.

export interface PlainInstruction {
  readonly programId: string;
  /** Addresses. */
  readonly accounts: readonly string[];
  readonly data: Uint8Array;
  readonly stackHeight: number;
}

/** Type and fields of an instruction; undefined: not one of the program's known ones. */
export type ParsedInstruction = { readonly type: string; readonly info: object } | undefined;
