// Addresses of the programs whose accounts and instructions the endpoint can parse.
//
// Called by the parsers and the token methods. Only names: parse-*.ts and token-layout.ts have the
// formats.

export const systemProgramId = "11111111111111111111111111111111";
export const voteProgramId = "Vote111111111111111111111111111111111111111";
const tokenProgramId = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const token2022ProgramId = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
export const associatedTokenProgramId = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL";
export const lookupTableProgramId = "AddressLookupTab1e1111111111111111111111111";
export const memoProgramIds: ReadonlySet<string> = new Set([
  "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo",
  "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
]);

/** Names of the programs in jsonParsed. */
export const tokenPrograms: ReadonlyMap<string, string> = new Map([
  [tokenProgramId, "spl-token"],
  [token2022ProgramId, "spl-token-2022"],
]);
