// Types of instructions in the encoding jsonParsed. Only types.

export interface PlainInstruction {
  readonly programId: string;
  /** Addresses of the accounts. */
  readonly accounts: readonly string[];
  readonly data: Uint8Array;
  readonly stackHeight: number;
}

/** Type and fields of an instruction; undefined: an unknown instruction of the program. */
export type ParsedInstruction = { readonly type: string; readonly info: object } | undefined;
