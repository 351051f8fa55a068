// A transfer of the System program, built with @solana/kit.

import {
  AccountRole,
  type Address,
  address,
  type Instruction,
  type KeyPairSigner,
} from "@solana/kit";

export const systemProgram = address("11111111111111111111111111111111");

export function transfer(from: KeyPairSigner, to: Address, amount: bigint): Instruction {
  const data = new Uint8Array(12);
  const view = new DataView(data.buffer);
  view.setUint32(0, 2, true);
  view.setBigUint64(4, amount, true);
  const accounts = [
    { address: from.address, role: AccountRole.WRITABLE_SIGNER },
    { address: to, role: AccountRole.WRITABLE },
  ];
  return { programAddress: systemProgram, accounts, data };
}
