// Builds and signs legacy transactions of any programs, as wire bytes.
//
// Pure. Used by `shredway land` and by the sandbox for everything that it sends itself. One or more signers,
// and the first one pays. Keys have the order of a message: signers first, and writable before read-only.

interface MessageSigner {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

export interface AccountUse {
  readonly key: Uint8Array;
  readonly isSigner: boolean;
  readonly isWritable: boolean;
}

export interface BuildInstruction {
  readonly program: Uint8Array;
  readonly accounts: readonly AccountUse[];
  readonly data: Uint8Array;
}

export const systemProgram = new Uint8Array(32);

export function u32Bytes(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

export function u64Bytes(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
}

/** Encodes a length below 16,384 as compact-u16. */
export function lengthBytes(length: number): Uint8Array {
  return Uint8Array.from(length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7]);
}

export function transferInstruction(
  from: Uint8Array,
  to: Uint8Array,
  lamports: bigint,
): BuildInstruction {
  return {
    program: systemProgram,
    accounts: [
      { key: from, isSigner: true, isWritable: true },
      { key: to, isSigner: false, isWritable: true },
    ],
    data: Buffer.concat([u32Bytes(2), u64Bytes(lamports)]),
  };
}

interface Slot {
  readonly key: Uint8Array;
  isSigner: boolean;
  isWritable: boolean;
}

function sortedKeys(payer: Uint8Array, instructions: readonly BuildInstruction[]): Slot[] {
  const slots = new Map<string, Slot>();
  const use = ({ key, isSigner, isWritable }: AccountUse): void => {
    const name = Buffer.from(key).toString("latin1");
    const slot = slots.get(name) ?? { key, isSigner: false, isWritable: false };
    slot.isSigner ||= isSigner;
    slot.isWritable ||= isWritable;
    slots.set(name, slot);
  };
  use({ key: payer, isSigner: true, isWritable: true });
  for (const { accounts } of instructions) accounts.forEach(use);
  for (const { program } of instructions) use({ key: program, isSigner: false, isWritable: false });
  const rank = ({ isSigner, isWritable }: Slot): number =>
    (isSigner ? 0 : 2) + (isWritable ? 0 : 1);
  return [...slots.values()].toSorted((a, b) => rank(a) - rank(b)); // a stable sort: the payer stays first
}

/** The signed wire bytes. Every signing account of the instructions must be among `signers`. */
export function buildTransaction(
  signers: readonly MessageSigner[],
  instructions: readonly BuildInstruction[],
  blockhash: Uint8Array,
): Uint8Array {
  const [payer] = signers;
  if (!payer) throw new RangeError("expected at least one signer, got none");
  const slots = sortedKeys(payer.publicKey, instructions);
  const indexOf = (key: Uint8Array): number =>
    slots.findIndex((slot) => Buffer.compare(slot.key, key) === 0);
  const count = (isSigner: boolean, isWritable: boolean): number =>
    slots.filter((slot) => slot.isSigner === isSigner && slot.isWritable === isWritable).length;
  const required = count(true, true) + count(true, false);
  const message = Buffer.concat([
    Uint8Array.of(required, count(true, false), count(false, false)),
    lengthBytes(slots.length),
    ...slots.map(({ key }) => key),
    blockhash,
    lengthBytes(instructions.length),
    ...instructions.flatMap(({ program, accounts, data }) => [
      Uint8Array.of(indexOf(program)),
      lengthBytes(accounts.length),
      Uint8Array.from(accounts, ({ key }) => indexOf(key)),
      lengthBytes(data.length),
      data,
    ]),
  ]);
  const signatures = slots.slice(0, required).map(({ key }) => {
    const signer = signers.find(({ publicKey }) => Buffer.compare(publicKey, key) === 0);
    if (!signer) throw new RangeError("expected the key pair of every signer, got one too few");
    return signer.sign(message);
  });
  return Buffer.concat([lengthBytes(required), ...signatures, message]);
}
