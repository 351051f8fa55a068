import {
  ComputeBudgetProgram,
  type Keypair,
  PublicKey,
  SYSVAR_CLOCK_PUBKEY,
  SYSVAR_RENT_PUBKEY,
  SystemProgram,
  TransactionInstruction,
} from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { u32, u64 } from "../../support/little-endian.ts";
import { addressOf, alice, ChainRun, wallet } from "../../support/transactions/chain.ts";

const loader = new PublicKey("BPFLoaderUpgradeab1e11111111111111111111111");
const memo = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
const buffer = wallet(70);
const program = wallet(71);
const [programData] = PublicKey.findProgramAddressSync([program.publicKey.toBytes()], loader);

const writable = (pubkey: PublicKey, isSigner = false) => ({ pubkey, isSigner, isWritable: true });
const readonly = (pubkey: PublicKey, isSigner = false) => ({ pubkey, isSigner, isWritable: false });

function loaderCall(
  keys: ReturnType<typeof writable>[],
  ...data: readonly Buffer[]
): TransactionInstruction {
  return new TransactionInstruction({ programId: loader, keys, data: Buffer.concat(data) });
}

/** Simulates like a preflight, sends, lets the slot pass and expects success of both. */
function must(run: ChainRun, instructions: TransactionInstruction[], signers: Keypair[]): void {
  const wire = run.legacy(instructions, signers);
  const simulated = run.chain.simulate(wire, { verifySignatures: true, replaceBlockhash: false });
  const signature = run.chain.send(wire);
  run.slots();
  expect([simulated.err, run.chain.status(signature)?.err]).toEqual([null, null]);
}

/** Deploys the code of the memo program under another address. */
function deploy(run: ChainRun): void {
  const code = Buffer.from(run.chain.account(memo)?.data ?? []);
  const create = (pair: Keypair, space: number) =>
    SystemProgram.createAccount({
      fromPubkey: alice.publicKey,
      newAccountPubkey: pair.publicKey,
      lamports: Number(run.chain.minimumBalanceForRentExemption(space)),
      space,
      programId: loader,
    });
  const initialize = loaderCall([writable(buffer.publicKey), readonly(alice.publicKey)], u32(0));
  must(run, [create(buffer, 37 + code.length), initialize], [alice, buffer]);
  for (let at = 0; at < code.length; at += 800) {
    const part = code.subarray(at, at + 800);
    const keys = [writable(buffer.publicKey), readonly(alice.publicKey, true)];
    must(run, [loaderCall(keys, u32(1), u32(at), u64(BigInt(part.length)), part)], [alice]);
  }
  const keys = [
    writable(alice.publicKey, true),
    writable(programData),
    writable(program.publicKey),
    writable(buffer.publicKey),
    readonly(SYSVAR_RENT_PUBKEY),
    readonly(SYSVAR_CLOCK_PUBKEY),
    readonly(SystemProgram.programId),
    readonly(alice.publicKey, true),
  ];
  must(
    run,
    [create(program, 36), loaderCall(keys, u32(2), u64(BigInt(code.length)))],
    [alice, program],
  );
}

function call(run: ChainRun, units: number): unknown {
  const instruction = new TransactionInstruction({
    programId: program.publicKey,
    keys: [],
    data: Buffer.from("hello"),
  });
  const limit = ComputeBudgetProgram.setComputeUnitLimit({ units });
  const signature = run.chain.send(run.legacy([limit, instruction], [alice]));
  run.slots();
  return run.chain.status(signature)?.err;
}

describe("a program", () => {
  it("can be deployed and called; a fork that undoes the deployment leaves no program", async () => {
    const run = await ChainRun.open({ intervalsPerSlot: 1 });
    deploy(run);
    expect(call(run, 100_001)).toBeNull();
    expect(run.chain.account(addressOf(program))?.executable).toBe(true);
    run.chain.faults.forkNext(100);
    run.slots(5);
    expect(run.chain.account(addressOf(program))).toBeNull();
    expect(run.chain.account(programData.toBase58())).toBeNull();
    expect(call(run, 100_002)).toBe("ProgramAccountNotFound");
    deploy(run);
    expect(call(run, 100_003)).toBeNull();
  });
});
