// The lower bound for a proxy in JavaScript: node:http reads the request, undici copies the body to the
// partner at the given port.
//
// It parses nothing, checks nothing and keeps nothing, and responds without waiting for the partner.
// Prints its own port and process id.

import { createServer } from "node:http";
import { Pool } from "undici";

const connections = 8;
const [partnerPort] = process.argv.slice(2);
const partner = new Pool(`http://127.0.0.1:${partnerPort}`, { connections });
const headers = { "content-type": "application/json" };
const answer = JSON.stringify({ jsonrpc: "2.0", result: "1", id: 1 });

function forward(body) {
  partner
    .request({ path: "/", method: "POST", headers, body })
    .then((response) => response.body.dump())
    .catch(() => undefined);
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    forward(Buffer.concat(chunks));
    response.setHeader("content-type", "application/json");
    response.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  console.log(JSON.stringify({ kind: "ready", port, pid: process.pid, credential: "" }));
});
