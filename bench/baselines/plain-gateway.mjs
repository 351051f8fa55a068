// The baseline gateway: a simple implementation with node:http and @solana/web3.js.
//
// It makes the same checks (form, tip, signatures) and forwards by fetch to the partner at the
// given port. Prints its own port and process id.

import { createServer } from "node:http";
import { SystemInstruction, SystemProgram, Transaction } from "@solana/web3.js";

const [partnerPort, tipAddress] = process.argv.slice(2);
const partner = `http://127.0.0.1:${partnerPort}/`;

function tipOf(transaction) {
  let total = 0n;
  for (const instruction of transaction.instructions) {
    if (!instruction.programId.equals(SystemProgram.programId)) continue;
    const { toPubkey, lamports } = SystemInstruction.decodeTransfer(instruction);
    if (toPubkey.toBase58() === tipAddress) total += lamports;
  }
  return total;
}

function submit({ id, params }) {
  const wire = Buffer.from(params[0], "base64");
  const transaction = Transaction.from(wire);
  if (tipOf(transaction) < 10_000n) throw new Error("tip too low");
  if (!transaction.verifySignatures()) throw new Error("signature invalid");
  const body = JSON.stringify({ jsonrpc: "2.0", id, method: "sendTransaction", params });
  const headers = { "content-type": "application/json" };
  fetch(partner, { method: "POST", headers, body })
    .then((answer) => answer.text())
    .catch(() => undefined);
  return Buffer.from(transaction.signature).toString("hex");
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const call = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    let answer;
    try {
      answer = { jsonrpc: "2.0", id: call.id, result: submit(call) };
    } catch (error) {
      answer = { jsonrpc: "2.0", id: call.id, error: { code: -32602, message: String(error) } };
    }
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  console.log(JSON.stringify({ kind: "ready", port, pid: process.pid, credential: "" }));
});
