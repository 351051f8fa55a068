// Describes in a sentence why a transaction failed: the message of a preflight failure.
//
// Used by the gateway and the sandbox in the response to sendTransaction. Programs read
// `error.data.err`; this text is for people, and for clients that show only the message. Unknown
// failures are shown unchanged.

import { quote } from "../errors.ts";
import { isObject } from "../values.ts";

const sentences: Readonly<Record<string, string>> = {
  AccountInUse: "Account in use",
  AccountLoadedTwice: "Account loaded twice",
  AccountNotFound: "Attempt to debit an account but found no record of a prior credit.",
  ProgramAccountNotFound: "Attempt to load a program that does not exist",
  InsufficientFundsForFee: "Insufficient funds for fee",
  InvalidAccountForFee: "This account may not be used to pay transaction fees",
  AlreadyProcessed: "This transaction has already been processed",
  BlockhashNotFound: "Blockhash not found",
  SignatureFailure: "Transaction did not pass signature verification",
  SanitizeFailure: "Transaction failed to sanitize accounts offsets correctly",
  InvalidProgramForExecution: "This program may not be used for executing instructions",
  AddressLookupTableNotFound: "Transaction loads an address table account that doesn't exist",
  InvalidAddressLookupTableIndex: "Transaction address table lookup uses an invalid index",
  TooManyAccountLocks: "Transaction locked too many accounts",
  MaxLoadedAccountsDataSizeExceeded: "Transaction exceeded max loaded accounts data size cap",
};

/** Bound for the text of unknown failures. */
const wordMax = 100;

function words(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, " ").toLowerCase();
}

function describeInstruction(error: unknown): string {
  if (typeof error === "string") return words(error.slice(0, wordMax));
  const custom = isObject(error) ? error["Custom"] : undefined;
  if (typeof custom === "number" || typeof custom === "bigint") {
    return `custom program error: 0x${custom.toString(16)}`;
  }
  return quote(error);
}

/** `failure`: the field `err` of an RPC answer; not null. */
export function describeFailure(failure: unknown): string {
  if (typeof failure === "string") {
    const sentence = Object.hasOwn(sentences, failure) ? sentences[failure] : undefined;
    return sentence ?? words(failure.slice(0, wordMax));
  }
  if (!isObject(failure)) return quote(failure);
  const instruction = failure["InstructionError"];
  if (Array.isArray(instruction)) {
    const [index, error]: readonly unknown[] = instruction;
    return `Error processing Instruction ${String(index)}: ${describeInstruction(error)}`;
  }
  if ("InsufficientFundsForRent" in failure) {
    return "Transaction results in an account with insufficient funds for rent";
  }
  return quote(failure);
}
