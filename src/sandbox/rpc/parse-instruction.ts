// Instructions in the encoding jsonParsed.
//
// Called by encode-transaction.ts for top-level and inner instructions. parse-system.ts and
// parse-token.ts parse known programs. As in the node, unknown or malformed instructions are shown
// with their accounts and data.

import { dataText } from "./bytes.ts";
import { parseSystem } from "./parse-system.ts";
import { parseToken } from "./parse-token.ts";
import type { ParsedInstruction, PlainInstruction } from "./parsed-instruction.ts";
import {
  associatedTokenProgramId,
  memoProgramIds,
  systemProgramId,
  tokenPrograms,
} from "./programs.ts";

function parseAssociatedToken({ accounts, data }: PlainInstruction): ParsedInstruction {
  const [source, account, wallet, mint, systemProgram, tokenProgram] = accounts;
  const types = ["create", "createIdempotent"] as const;
  const type = data.length === 0 ? "create" : types[data[0] ?? 0];
  if (!type || tokenProgram === undefined || data.length > 1) return undefined;
  return { type, info: { source, account, wallet, mint, systemProgram, tokenProgram } };
}

function parseKnown(
  instruction: PlainInstruction,
): { program: string; parsed: unknown } | undefined {
  const { programId, data } = instruction;
  if (memoProgramIds.has(programId)) {
    return { program: "spl-memo", parsed: Buffer.from(data).toString() };
  }
  const tokenProgram = tokenPrograms.get(programId);
  if (tokenProgram !== undefined) {
    const parsed = parseToken(instruction);
    return parsed && { program: tokenProgram, parsed };
  }
  if (programId === systemProgramId) {
    const parsed = parseSystem(instruction);
    return parsed && { program: "system", parsed };
  }
  if (programId === associatedTokenProgramId) {
    const parsed = parseAssociatedToken(instruction);
    return parsed && { program: "spl-associated-token-account", parsed };
  }
  return undefined;
}

export function encodeParsedInstruction(instruction: PlainInstruction): object {
  const { programId, accounts, data, stackHeight } = instruction;
  const known = parseKnown(instruction);
  if (known) return { ...known, programId, stackHeight };
  return { accounts, data: dataText(data), programId, stackHeight };
}
