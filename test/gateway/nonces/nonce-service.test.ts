// NonceService: its results, and what it signs after all checks have passed.

import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { createLogger } from "../../../src/core/log.ts";
import { NonceService } from "../../../src/gateway/nonces/nonce-service.ts";
import type { NonceInfo, NonceKeys, Signer } from "../../../src/gateway/nonces/types.ts";
import { verifySignatures } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { closing } from "../../support/closing.ts";
import { addressOf, bob, wallet } from "../../support/transactions/chain.ts";
import {
  bytesOf,
  ChainNode,
  Disk,
  DiskStore,
  encode,
  keysOf,
  NonceHarness,
  ownerOf,
  realCheck,
  Steps,
  unsignedTransfer,
} from "./nonce-harness.ts";

const one = ownerOf("one");

const unsigned = (info: NonceInfo, nonce = info.nonce): Uint8Array =>
  unsignedTransfer(info, { nonce });

/** Messages that a key signed. */
class Watched implements Signer {
  readonly publicKey: Uint8Array;
  readonly address: string;
  readonly #signer: Signer;
  readonly #signed: Uint8Array[];

  constructor(signer: Signer, signed: Uint8Array[]) {
    this.publicKey = signer.publicKey;
    this.address = signer.address;
    this.#signer = signer;
    this.#signed = signed;
  }

  sign(message: Uint8Array): Uint8Array {
    this.#signed.push(Uint8Array.from(message));
    return this.#signer.sign(message);
  }
}

interface Harness {
  readonly nonceHarness: NonceHarness;
  readonly service: NonceService;
  readonly node: ChainNode;
  readonly info: NonceInfo;
  /** Messages that authorities signed from now on. */
  readonly signed: Uint8Array[];
  /** Called at each check. */
  readonly checks: { wire: Uint8Array; account: Uint8Array; authority: Uint8Array }[];
  /** Error of the check. */
  refusal: ShredwayError | null;
}

async function open(name: string): Promise<Harness> {
  const nonceHarness = await NonceHarness.open();
  nonceHarness.run.chain.airdrop(addressOf(bob), 1_000_000_000n);
  const signed: Uint8Array[] = [];
  const keys = keysOf(name);
  const watched: NonceKeys = {
    funding: keys.funding,
    account: (index) => keys.account(index),
    authority: (index) => new Watched(keys.authority(index), signed),
  };
  const checks: Harness["checks"] = [];
  const node = new ChainNode(nonceHarness.run, new Steps());
  const service = await NonceService.open(
    {
      clock: nonceHarness.clock,
      log: createLogger({ level: "silent" }),
      node,
      store: new DiskStore(new Disk(), new Steps()),
      keys: watched,
      check: {
        place: (wire, account, authority) => {
          checks.push({ wire, account, authority });
          if (harness.refusal) throw harness.refusal;
          return realCheck.place(wire, account, authority);
        },
      },
      encode,
    },
    nonceHarness.limits,
  );
  closing(service);
  const info = await nonceHarness.managed(service, one);
  const harness: Harness = { nonceHarness, service, node, info, signed, checks, refusal: null };
  return harness;
}

describe("co-signing", () => {
  it("does not query the node for a recent value", async () => {
    const { service, info, node } = await open("lately");
    await service.of(info.nonceAccount);
    node.down.add("accounts");
    for (let i = 0; i < 2; i++) await service.coSign(info.nonceAccount, unsigned(info));
    const stale = { ...info, nonce: info.nonceAuthority };
    await expect(service.coSign(info.nonceAccount, unsigned(stale))).rejects.toMatchObject({
      reason: "rpc_failed",
    });
  });

  it("inserts the authority's signature, and the transaction lands", async () => {
    const { nonceHarness, service, info, signed, checks } = await open("lands");
    const wire = unsigned(info);
    const before = Uint8Array.from(wire);
    const copy = await service.coSign(info.nonceAccount, wire);
    expect(wire).toEqual(before);
    const parsed = parseTransaction(copy);
    verifySignatures(parsed);
    expect(signed).toEqual([Uint8Array.from(parsed.message)]);
    expect(checks).toEqual([
      {
        wire: expect.anything(),
        account: bytesOf(info.nonceAccount),
        authority: bytesOf(info.nonceAuthority),
      },
    ]);
    const signature = nonceHarness.run.chain.send(copy);
    await nonceHarness.pass(1000);
    expect(nonceHarness.run.chain.status(signature)?.err).toBeNull();
  });

  it("signs the checked bytes, even if the caller changes its own", async () => {
    const { nonceHarness, service, info, node } = await open("bytes");
    await nonceHarness.pass(120_000); // not cached any more: the node is queried between check and signature
    const wire = unsigned(info);
    const before = Uint8Array.from(wire);
    const accounts = node.accounts.bind(node);
    node.accounts = (addresses) => {
      wire.fill(7);
      return accounts(addresses);
    };
    const copy = await service.coSign(info.nonceAccount, wire);
    expect(wire).not.toEqual(before);
    expect(parseTransaction(copy).message).toEqual(parseTransaction(before).message);
    verifySignatures(parseTransaction(copy));
  });

  it("uses no key if the check refuses", async () => {
    const harness = await open("refused");
    const { service, info, signed } = harness;
    harness.refusal = new ShredwayError("co_signing_refused", "something else");
    await expect(service.coSign(info.nonceAccount, unsigned(info))).rejects.toBe(harness.refusal);
    harness.refusal = null;
    await expect(service.coSign(info.nonceAccount, new Uint8Array(9))).rejects.toMatchObject({
      reason: "transaction_invalid",
    });
    expect(signed).toEqual([]);
  });

  it("accepts only the present value, and queries the node before it refuses another", async () => {
    const { nonceHarness, service, info, node, signed } = await open("stale");
    const landed = nonceHarness.run.chain.send(
      await service.coSign(info.nonceAccount, unsigned(info)),
    );
    await nonceHarness.pass(1500);
    expect(nonceHarness.run.chain.status(landed)?.err).toBeNull();
    signed.length = 0;
    const { value = "" } = nonceHarness.nonce(info.nonceAccount) ?? {};
    await expect(service.coSign(info.nonceAccount, unsigned(info))).rejects.toMatchObject({
      reason: "nonce_stale",
      message: expect.stringMatching(new RegExp(`${value}.*${info.nonce}`)),
    });
    expect(signed).toEqual([]);
    node.accountsOverride = () => null; // only the cache has the account
    const fromMemory = await service.coSign(info.nonceAccount, unsigned(info, value));
    verifySignatures(parseTransaction(fromMemory));
  });

  it("accepts a value newer than the cache", async () => {
    const { nonceHarness, service, info, node } = await open("newer");
    const landed = nonceHarness.run.chain.send(
      await service.coSign(info.nonceAccount, unsigned(info)),
    );
    const actual = node.accountsOverride;
    const old = nonceHarness.run.chain.account(info.nonceAccount, "confirmed");
    node.accountsOverride = () => old;
    await nonceHarness.pass(1500);
    expect(nonceHarness.run.chain.status(landed)?.err).toBeNull();
    node.accountsOverride = actual;
    const { value = "" } = nonceHarness.nonce(info.nonceAccount) ?? {};
    expect((await service.of(info.nonceAccount)).nonce).toBe(info.nonce);
    verifySignatures(
      parseTransaction(await service.coSign(info.nonceAccount, unsigned(info, value))),
    );
  });

  it("accepts only managed accounts with the service's authority", async () => {
    const { service, info, node, signed, nonceHarness } = await open("ours");
    await expect(
      service.coSign(info.nonceAuthority, unsigned({ ...info, nonceAccount: info.nonceAuthority })),
    ).rejects.toMatchObject({ reason: "co_signing_refused" });
    const view = nonceHarness.run.chain.account(info.nonceAccount, "confirmed");
    const data = Uint8Array.from(view?.data ?? []).fill(3, 8, 40);
    node.accountsOverride = () => view && { ...view, data };
    await nonceHarness.pass(1000);
    await expect(service.coSign(info.nonceAccount, unsigned(info))).rejects.toMatchObject({
      reason: "nonce_invalid",
      message: expect.stringContaining(info.nonceAuthority),
    });
    expect(signed).toEqual([]);
  });
});

describe("NonceService", () => {
  it("returns any nonce account on the chain and rejects others", async () => {
    const { nonceHarness, service, info } = await open("any");
    const other = await nonceHarness.start(new Disk(), null);
    expect(await other.service.of(info.nonceAccount)).toEqual(info);
    await expect(service.of(addressOf(bob))).rejects.toMatchObject({ reason: "nonce_invalid" });
    await expect(service.of(addressOf(wallet(62)))).rejects.toMatchObject({
      reason: "nonce_invalid",
      message: expect.stringContaining("no account"),
    });
    expect(service.snapshot()).toMatchObject({ managed: 1, creating: 0, inUse: 1 });
  });

  it("returns the new value soon after a reported advance", async () => {
    const { nonceHarness, service, info } = await open("soon");
    await nonceHarness.pass(3500);
    const wire = await service.coSign(info.nonceAccount, unsigned(info));
    const signature = nonceHarness.run.chain.send(wire);
    while (nonceHarness.run.chain.status(signature) === null) await nonceHarness.pass(100);
    service.advanced(bytesOf(info.nonceAccount), bytesOf(info.nonce));
    while (nonceHarness.run.chain.status(signature)?.confirmationStatus === "processed") {
      await nonceHarness.pass(100);
    }
    await nonceHarness.pass(200);
    const { nonce } = await service.of(info.nonceAccount);
    expect(nonce).toBe(nonceHarness.nonce(info.nonceAccount)?.value);
    expect(nonce).not.toBe(info.nonce);
  });
});
