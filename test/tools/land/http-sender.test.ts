// Senders over HTTP: the request of each dialect, and the reason for each kind of response.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { HttpSender } from "../../../src/tools/land/http-sender.ts";
import { readSenders } from "../../../src/tools/land/sender-options.ts";
import { closing } from "../../support/closing.ts";

interface Received {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A server that answers with `answer`; null: never. */
async function serverWith(answer: { status?: number; body: string } | null) {
  const received: Received[] = [];
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await buffer(request)).toString("latin1");
    received.push({ url: request.url ?? "", headers: request.headers, body });
    if (answer) response.writeHead(answer.status ?? 200).end(answer.body);
  };
  const server = createServer((request, response) => void respond(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return { received, url: `http://127.0.0.1:${port}` };
}

function senderOf(text: string, timeoutMs = 5000): HttpSender {
  const [plan] = readSenders([text], undefined);
  if (!plan || plan.dialect === "quic" || plan.dialect === "shredway") throw new RangeError(text);
  return new HttpSender({ ...plan, dialect: plan.dialect }, timeoutMs);
}

const wire = Uint8Array.of(1, 2, 3);
const accepted = JSON.stringify({ jsonrpc: "2.0", id: 1, result: "signature" });

describe("requests", () => {
  it.each([
    ["dialect=rpc", "/?key=1", {}],
    [
      "dialect=jito api-key=abc bundle-only",
      "/api/v1/transactions?key=1&bundleOnly=true",
      { "x-jito-auth": "abc" },
    ],
    ["dialect=astralane api-key=abc mev-protect", "/iris?key=1&api-key=abc&mev-protect=true", {}],
    ["header=x-key:abc", "/?key=1", { "x-key": "abc" }],
  ])("of %s", async (words, url, headers) => {
    const server = await serverWith({ body: accepted });
    const sender = senderOf(`x=${server.url}/?key=1 max-retries=0 ${words}`);
    expect(await sender.prepare(wire, "signature")()).toEqual({ error: null, hasResponse: true });
    expect(server.received).toMatchObject([{ url, headers }]);
    expect(JSON.parse(server.received[0]?.body ?? "")).toMatchObject({
      method: "sendTransaction",
      params: ["AQID", { encoding: "base64", skipPreflight: true, maxRetries: 0 }],
    });
  });

  it.each([
    ["dialect=text", "AQID", "text/plain"],
    ["dialect=bytes", "\u0001\u0002\u0003", "application/octet-stream"],
  ])("of %s", async (words, body, type) => {
    const server = await serverWith({ body: "ok" });
    const sender = senderOf(`x=${server.url}/send ${words}`);
    expect(await sender.prepare(wire, "signature")()).toEqual({ error: null, hasResponse: true });
    expect(server.received).toMatchObject([
      { url: "/send", body, headers: { "content-type": type } },
    ]);
  });

  it("asks a block engine for its tip accounts", async () => {
    const server = await serverWith({ body: JSON.stringify({ result: ["a", 1, "b"] }) });
    const sender = senderOf(`x=${server.url} dialect=jito bundle-only`);
    expect(await sender.tipAccounts()).toEqual(["a", "b"]);
    expect(server.received).toMatchObject([{ url: "/api/v1/getTipAccounts" }]);
  });
});

describe("responses", () => {
  const error = (fields: object) =>
    JSON.stringify({ error: { code: -32005, message: "no", ...fields } });
  it.each([
    [{ body: error({}) }, "code -32005"],
    [{ status: 429, body: error({ data: { reason: "rate_limited" } }) }, "rate_limited"],
    [{ status: 503, body: "<html>" }, "http 503"],
    [{ body: JSON.stringify({ result: "another" }) }, "answer_invalid"],
    [{ body: "{" }, "answer_invalid"],
  ])("%j", async (answer, reason) => {
    const { url } = await serverWith(answer);
    const result = await senderOf(`x=${url}`).prepare(wire, "signature")();
    expect(result).toMatchObject({ error: { reason }, hasResponse: true });
  });

  it("that never come have no time", async () => {
    const { url } = await serverWith(null);
    const late = await senderOf(`x=${url}`, 50).prepare(wire, "signature")();
    expect(late).toMatchObject({ error: { reason: "timeout" }, hasResponse: false });
    const closed = await senderOf("x=http://127.0.0.1:1/").prepare(wire, "signature")();
    expect(closed).toMatchObject({ error: { reason: "unreachable" }, hasResponse: false });
  });
});
