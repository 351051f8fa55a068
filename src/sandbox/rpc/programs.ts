// Addresses of the programs whose accounts and instructions the endpoint can take apart.
//
// Called by the parsers and the token methods. Only names: what is in the accounts and instructions
// stands in parse-*.ts and token-layout.ts.

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

/** As jsonParsed names them. */
export const tokenPrograms: ReadonlyMap<string, string> = new Map([
  [tokenProgramId, "spl-token"],
  [token2022ProgramId, "spl-token-2022"],
]);
