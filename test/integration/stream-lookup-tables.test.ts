// Address lookup tables of a whole sandbox: created on its chain, used by transactions, and sent to a client.

import { setTimeout } from "node:timers/promises";
import {
  AddressLookupTableProgram,
  Connection,
  Keypair,
  SystemProgram,
  type TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { metadataOf, subscribeDeshred } from "../support/streams/stream-clients.ts";

describe("address lookup tables of the sandbox", () => {
  it("are resolved soon after they were created, and after they were extended", async () => {
    const sandbox = await runningSandbox("127.0.0.1:0", { streams: "127.0.0.1:0" });
    const key = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
    const [first, second] = [Keypair.generate().publicKey, Keypair.generate().publicKey];
    const client = subscribeDeshred(
      sandbox.streamsAddress,
      {
        deshred_transactions: { first: { account_include: [first.toBase58(), second.toBase58()] } },
      },
      { metadata: metadataOf({ "x-token": key }) },
    );
    const connection = new Connection(`http://${sandbox.endpoint.address}`, "confirmed");
    const payer = Keypair.generate();
    const isConfirmed = async (signature: string) => {
      const { value } = await connection.getSignatureStatuses([signature]);
      const [status] = value;
      return status?.err === null && status.confirmationStatus !== "processed";
    };
    const confirmed = async (signature: string) => {
      while (!(await isConfirmed(signature))) await setTimeout(20);
    };
    await confirmed(await connection.requestAirdrop(payer.publicKey, 10_000_000_000));
    const send = async (
      instructions: TransactionInstruction[],
      tables: Parameters<TransactionMessage["compileToV0Message"]>[0] = [],
    ) => {
      const { blockhash } = await connection.getLatestBlockhash();
      const { publicKey: payerKey } = payer;
      const message = new TransactionMessage({
        payerKey,
        recentBlockhash: blockhash,
        instructions,
      });
      const transaction = new VersionedTransaction(message.compileToV0Message(tables));
      transaction.sign([payer]);
      return connection.sendTransaction(transaction, { skipPreflight: true });
    };
    const authority = payer.publicKey;
    const [create, table] = AddressLookupTableProgram.createLookupTable({
      authority,
      payer: authority,
      recentSlot: await connection.getSlot("finalized"),
    });
    const extend = (address: typeof first) =>
      AddressLookupTableProgram.extendLookupTable({
        payer: authority,
        authority,
        lookupTable: table,
        addresses: [address],
      });
    /** Uses the table until the client receives a transaction with the address. */
    const receives = async (address: typeof first) => {
      const hasIt = () =>
        client.messages.some((one) =>
          one.deshred_transaction?.transaction.loaded_writable_addresses?.some((loaded) =>
            loaded.equals(address.toBytes()),
          ),
        );
      while (!hasIt()) {
        const { value } = await connection.getAddressLookupTable(table);
        if (!value) throw new Error("expected the table");
        const transfer = { fromPubkey: authority, toPubkey: address, lamports: 1_000_000 };
        await confirmed(await send([SystemProgram.transfer(transfer)], [value]));
      }
    };
    await confirmed(await send([create, extend(first)]));
    await receives(first);
    await confirmed(await send([extend(second)]));
    await receives(second);
    await until(() => client.messages.every(({ filters }) => filters.length === 1), "the filters");
    const metrics = sandbox.service.operations?.metrics("text") ?? "";
    expect(metrics).toContain("shredway_stream_lookup_tables 1");
    expect(metrics).toContain("shredway_stream_lookup_addresses 2");
    expect(metrics).toMatch(/shredway_stream_lookup_requests_total\{result="failed"\} 0/);
  });
});
