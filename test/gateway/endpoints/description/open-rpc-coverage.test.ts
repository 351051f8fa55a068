// The public OpenRPC test tool against the running service: it calls every method with valid and
// invalid parameters and validates every response against the served document. The sandbox provides
// the chain and the routes.

import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { base58 } from "@scure/base";
import {
  ComputeBudgetProgram,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { messageOf } from "../../../../src/core/errors.ts";
import { KeyPair } from "../../../../src/core/key-pair.ts";
import { isObject } from "../../../../src/core/values.ts";
import { claimTextOf } from "../../../../src/gateway/accounts/public-key-proof.ts";
import { methods } from "../../../../src/gateway/methods/method-table.ts";
import { bundleIdOf } from "../../../../src/gateway/submission/tracked-transaction.ts";
import { RpcClient } from "../../../../src/platform/solana/rpc-client.ts";
import type { Sandbox } from "../../../../src/sandbox/sandbox.ts";
import { closing } from "../../../support/closing.ts";
import { checkReason, checkResult } from "../../../support/gateway/described-answers.ts";
import {
  type CoverageCall,
  examplesRule,
  fakerRule,
  runCoverage,
} from "../../../support/gateway/open-rpc-tools.ts";
import { until } from "../../../support/network/udp-receiver.ts";
import { runningSandbox } from "../../../support/processes/sandbox.ts";
import { stockConnection } from "../../../support/quic/stock-connection.ts";

const patienceMs = 60_000;
const region = "frankfurt";

let sandbox: Sandbox;
let gateway: RpcClient;
let payer: Keypair;
let blockhash: string;
const tipAccounts: Record<string, PublicKey> = {};
/** Parameters of the calls, by method. */
const real: Record<string, readonly unknown[][]> = {};

function field(value: unknown, name: string): string {
  return isObject(value) ? String(value[name]) : "";
}

function paid(lamports: number, to = "getTipAccounts"): TransactionInstruction {
  const toPubkey = tipAccounts[to] ?? PublicKey.default;
  return SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey, lamports });
}

let created = 0;
function signed(...instructions: readonly TransactionInstruction[]): Buffer {
  const transaction = new Transaction({
    feePayer: payer.publicKey,
    blockhash,
    lastValidBlockHeight: 0, // only for clients that wait
  });
  transaction.add(paid(20_000 + ++created), ...instructions).sign(payer);
  return transaction.serialize();
}

function base64(wire: Buffer): string {
  return wire.toString("base64");
}

function signatureOf(wire: Buffer): string {
  return base58.encode(wire.subarray(1, 65));
}

/** Retries while the account is being created. */
async function managedNonce(key: string): Promise<unknown> {
  const endMs = performance.now() + patienceMs;
  for (;;) {
    try {
      return await gateway.call("getNonce", [key]);
    } catch (error) {
      if (!messageOf(error).includes("nonce_pending") || performance.now() > endMs) throw error;
      await systemClock.sleep(200);
    }
  }
}

function oneOfPair(nonce: unknown, microLamports: number, lamports: number): string {
  const transaction = new Transaction();
  transaction.feePayer = payer.publicKey;
  transaction.recentBlockhash = field(nonce, "nonce");
  transaction.add(
    SystemProgram.nonceAdvance({
      noncePubkey: new PublicKey(field(nonce, "nonceAccount")),
      authorizedPubkey: new PublicKey(field(nonce, "nonceAuthority")),
    }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports }),
    paid(lamports),
  );
  transaction.partialSign(payer);
  return transaction.serialize({ requireAllSignatures: false }).toString("base64");
}

/** Key pair of the public key that is registered and then removed. */
const ownPair = new KeyPair(randomBytes(32));

/** The signed parameter of registerPublicKey. */
async function registration(): Promise<object> {
  const accountId = field(await gateway.call("getPublicKeys"), "account");
  const expiresAt = new Date(Date.now() + 600_000).toISOString();
  const claim = { publicKey: ownPair.address, purpose: "tpu" as const, expiresAt };
  const text = claimTextOf({ accountId, ...claim });
  return { ...claim, signature: base58.encode(ownPair.sign(Buffer.from(text))) };
}

/** A destination on this machine, with the token of its first challenge. */
async function provable(): Promise<{ id: string; token: string }> {
  const socket = createSocket("udp4");
  closing({ close: () => void socket.close() });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const arrived = once(socket, "message");
  const address = `127.0.0.1:${socket.address().port}`;
  const id = field(await gateway.call("addDestination", [{ region, address }]), "id");
  const [datagram]: unknown[] = await arrived;
  if (!Buffer.isBuffer(datagram)) throw new Error("expected a challenge");
  return { id, token: tokenOf(datagram) };
}

function tokenOf(datagram: Buffer): string {
  return datagram.subarray(8, 24).toString("hex");
}

async function registerTip(): Promise<string> {
  const wire = signed(paid(250_000, "getShredTipAccounts"));
  const slot = Number(sandbox.chain.slot("processed"));
  const url = Object.assign(new URL(sandbox.gatewayUrl), { pathname: "/shred-pay" });
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify([{ transaction: base64(wire), slot }]),
  });
  const text = await response.text();
  expect(text).toContain(signatureOf(wire));
  return signatureOf(wire);
}

async function landed(signature: string): Promise<void> {
  const endMs = performance.now() + patienceMs;
  while (field(await gateway.call("getTransactionStatus", [signature]), "state") === "open") {
    if (performance.now() > endMs) throw new Error("no end in time");
    await systemClock.sleep(50);
  }
}

async function open(): Promise<void> {
  sandbox = await runningSandbox("127.0.0.1:0", { streams: "127.0.0.1:0" });
  gateway = new RpcClient(sandbox.gatewayUrl, patienceMs);
  const key = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
  payer = Keypair.generate();
  const chain = stockConnection(`http://${sandbox.endpoint.address}`, "processed");
  await chain.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
  await until(() => sandbox.chain.account(payer.publicKey.toBase58()) !== null, "the airdrop");
  for (const name of ["getTipAccounts", "getShredTipAccounts"]) {
    const accounts = await gateway.call(name);
    tipAccounts[name] = new PublicKey(Array.isArray(accounts) ? String(accounts[0]) : "");
  }
  ({ blockhash } = await chain.getLatestBlockhash());
  const nonce = await managedNonce(key);
  const { id, token } = await provable();
  await registerTip();
  const [first, alone] = [signed(), signed()];
  await gateway.call("sendTransaction", [base64(first), { skipPreflight: true }]);
  await gateway.call("sendBundle", [[base64(alone)]]);
  await landed(signatureOf(first));
  const bundle = bundleIdOf([signatureOf(alone)]);
  const unitPrice = ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 10_000_000 });
  const unitLimit = ComputeBudgetProgram.setComputeUnitLimit({ units: 1000 });
  const skip = { encoding: "base64", skipPreflight: true };
  Object.assign(real, {
    sendTransaction: [
      [base64(signed()), skip],
      [base64(signed()), {}, { mevProtect: false }],
    ],
    sendBundle: [[[base64(signed()), base64(signed())], { encoding: "base64" }]],
    sendBatch: [[[base64(signed()), base64(signed())]]],
    sendIdeal: [[[oneOfPair(nonce, 1_000_000, 10_000), oneOfPair(nonce, 100, 1_000_000)]]],
    sendAlt: [[base64(signed(unitPrice, unitLimit)), { enableFallback: true }]],
    getHealth: [[]],
    getTransactionStatus: [
      [signatureOf(first)],
      [[signatureOf(first), base58.encode(new Uint8Array(64).fill(9))]],
    ],
    getBundleStatuses: [[[bundle]]],
    getInflightBundleStatuses: [[[bundle, "0".repeat(64)]]],
    getTipAccounts: [[]],
    getShredTipAccounts: [[null]],
    getRegions: [[]],
    getTier: [[]],
    getTierHistory: [[], [{ limit: 5 }]],
    getDestinations: [[]],
    addDestination: [[{ region, address: "127.0.0.1:9001" }]],
    removeDestination: [[added]],
    challengeDestination: [[id]],
    updateDestination: [[id, { recovered: true }]],
    proveDestination: [[id, token]],
    getRegistrations: [[], [{ limit: 1, beforeMs: null }]],
    getNonce: [[key]],
    getPublicKeys: [[]],
    registerPublicKey: [[await registration()]],
    removePublicKey: [[ownPair.address]],
    startTransactionPush: [
      [id, {}],
      [id, null, { leaseSeconds: 600 }],
    ],
    getTransactionPushes: [[]],
    stopTransactionPush: [[id]],
  });
}

/** Placeholder for the id of the destination that was added last. */
const added = "the id that addDestination answered";

/**
 * The served document with real calls as examples, without formats, which the tool's validator does
 * not support.
 */
async function servedDocument(): Promise<Record<string, unknown>> {
  const response = await fetch(`${new URL(sandbox.gatewayUrl).origin}/openrpc.json`);
  const text = await response.text();
  const document: unknown = JSON.parse(text, (name, value: unknown) =>
    name === "format" ? undefined : value,
  );
  if (!isObject(document) || !Array.isArray(document["methods"])) throw new Error("no document");
  const described = document["methods"].filter(isObject).map((method) => ({
    ...method,
    examples: (real[String(method["name"])] ?? []).map((params, i) => ({
      name: String(i),
      params: params.map((value) => ({ name: "value", value })),
      result: { name: "result", value: "whatever fits the schema" },
    })),
  }));
  // A challenge invalidates the earlier token, so the proof comes first.
  const isProof = (method: object) => field(method, "name") === "proveDestination";
  const ordered = [...described.filter(isProof), ...described.filter((each) => !isProof(each))];
  return { ...document, methods: ordered, servers: [{ url: sandbox.gatewayUrl }] };
}

let lastAdded: unknown;
async function call(url: string, method: string, params: unknown): Promise<unknown> {
  const given = Array.isArray(params)
    ? params.map((each) => (each === added ? lastAdded : each))
    : [];
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: given });
  const response = await fetch(url, { method: "POST", body });
  const answer: unknown = await response.json();
  if (method === "addDestination" && isObject(answer)) lastAdded = field(answer["result"], "id");
  return answer;
}

/** null: a result that matches its schema, or a declared error. */
function fault({ methodName, result, error }: Record<string, unknown>): string | null {
  try {
    const name = String(methodName);
    if (error === undefined) checkResult(name, result);
    else if (checkReason(name, error) === null) return "expected a reason";
    return null;
  } catch (thrown) {
    return messageOf(thrown);
  }
}

function failed(calls: readonly CoverageCall[]): unknown[] {
  return calls
    .filter(({ valid }) => !valid)
    .map(({ methodName, reason, error }) => ({ methodName, reason, error }));
}

/** The tool validates the responses to real parameters. */
async function realParameters(): Promise<void> {
  const calls = await runCoverage(await servedDocument(), call, [examplesRule()]);
  expect(failed(calls)).toEqual([]);
  const called = new Set(calls.map(({ methodName }) => methodName));
  expect([...called].toSorted()).toEqual(Object.keys(methods).toSorted());
}

/** The tool accepts results and declared errors for parameters generated from the schemas. */
async function checkGeneratedParameters(): Promise<void> {
  const calls = await runCoverage(await servedDocument(), call, [fakerRule(fault)]);
  expect(failed(calls)).toEqual([]);
  expect(calls.length).toBeGreaterThan(50);
}

/** The tool accepts results and declared errors for parameters of wrong types. */
async function wrongParameters(): Promise<void> {
  const wrong = [null, true, -1, 1.5, 2 ** 70, "", "x", [], {}, [[]], { region: 5 }];
  const rule = {
    getTitle: () => "wrong parameters",
    getCalls: (_: unknown, { name, params }: { name: string; params: unknown[] }) =>
      [...wrong, [5], ["x"]].flatMap((value) =>
        params.map((__, at) => ({
          title: "wrong parameters",
          methodName: name,
          params: params.map((___, i) => (i === at ? value : null)),
          url: sandbox.gatewayUrl,
          resultSchema: {},
        })),
      ),
    validateCall: (given: Record<string, unknown>) => {
      const found = fault(given);
      return Object.assign(given, { valid: found === null, reason: found ?? undefined });
    },
  };
  const calls = await runCoverage(await servedDocument(), call, [rule]);
  expect(failed(calls)).toEqual([]);
  expect(calls.filter(({ error }) => error !== undefined).length).toBeGreaterThan(100);
}

/** The tool detects an undeclared field. */
async function plantedFaults(): Promise<void> {
  const document = await servedDocument();
  const methodsOf = document["methods"];
  const only = Array.isArray(methodsOf)
    ? methodsOf.filter((each) => ["getTier", "getRegions"].includes(field(each, "name")))
    : [];
  const planted = async (url: string, method: string, params: unknown): Promise<unknown> => {
    const answer = await call(url, method, params);
    const result = isObject(answer) ? answer["result"] : undefined;
    if (isObject(result)) result["planted"] = 1;
    if (Array.isArray(result) && isObject(result[0])) delete result[0]["url"];
    return answer;
  };
  const calls = await runCoverage({ ...document, methods: only }, planted, [examplesRule()]);
  expect(calls.map(({ valid }) => valid)).toEqual([false, false]);
}

describe("the public OpenRPC test tool", () => {
  it("accepts every response of the running service", async () => {
    expect.hasAssertions(); // each of the four asserts what it called
    await open();
    await realParameters();
    await checkGeneratedParameters();
    await wrongParameters();
    await plantedFaults();
  });
});
