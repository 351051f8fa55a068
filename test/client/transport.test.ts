// One call and its response: the request, possible responses of the service or of a proxy, and
// retries. Real HTTP; a test server sends the responses that the gateway never sends.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { ShredwayCallError, ShredwayClient } from "../../src/client/index.ts";
import { ShredwayError } from "../../src/core/errors.ts";
import { closing } from "../support/closing.ts";
import { GatewayRun } from "../support/gateway/gateway.ts";
import { freePort } from "../support/network/free-ports.ts";
import { refusedHost } from "../support/network/refused-host.ts";
import { until } from "../support/network/udp-receiver.ts";
import { CutProxy } from "./cut-proxy.ts";

interface RecordedRequest {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Answer = (response: ServerResponse, request: RecordedRequest) => void;

/** Sends these responses one after the other, then repeats the last one. */
async function serverOf(
  ...answers: Answer[]
): Promise<{ url: string; requests: RecordedRequest[] }> {
  const requests: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => {
      const one = { url: request.url ?? "", headers: request.headers, body };
      requests.push(one);
      answers[Math.min(requests.length, answers.length) - 1]?.(response, one);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return { url: `http://127.0.0.1:${port}`, requests };
}

function says(text: string, status = 200, headers: Record<string, string> = {}): Answer {
  return (response) => response.writeHead(status, headers).end(text);
}

function rpcError(error: object, status = 200, headers: Record<string, string> = {}): Answer {
  return says(JSON.stringify({ jsonrpc: "2.0", error, id: 1 }), status, headers);
}

const ok = says('{"jsonrpc":"2.0","result":["tip"],"id":1}');
const limited = rpcError(
  { code: -32_005, message: "rate_limited: later", data: { reason: "rate_limited", limit: 9 } },
  429,
  { "retry-after": "0" },
);

async function failure(work: Promise<unknown>): Promise<ShredwayCallError> {
  const thrown: unknown = await work.catch((error: unknown) => error);
  if (thrown instanceof ShredwayCallError) return thrown;
  throw new Error(`expected a ShredwayCallError, got ${String(thrown)}`);
}

it("sends the key in a header, not in URLs, and preserves a proxy's path", async () => {
  const { url, requests } = await serverOf(ok);
  for (const path of [
    "/relay?api-key=sw_1",
    "/?api-key=sw_1",
    "/inner/relay/?api-key=sw_1",
    "/inner",
  ]) {
    const client = new ShredwayClient({ url: `${url}${path}` });
    expect(await client.getTipAccounts("frankfurt")).toEqual(["tip"]);
  }
  expect(requests.map((each) => each.url)).toEqual([
    "/relay",
    "/relay",
    "/inner/relay",
    "/inner/relay",
  ]);
  expect(requests.map((each) => each.headers["api-key"])).toEqual([
    "sw_1",
    "sw_1",
    "sw_1",
    undefined,
  ]);
  expect(JSON.parse(requests[0]?.body ?? "")).toEqual({
    jsonrpc: "2.0",
    id: 1,
    method: "getTipAccounts",
    params: ["frankfurt"],
  });
  expect(() => new ShredwayClient({ url: "ftp://here" })).toThrow("expected http: or https:");
});

it("sends every option", async () => {
  const { url, requests } = await serverOf(says('{"jsonrpc":"2.0","result":"s","id":1}'));
  const client = new ShredwayClient({ url });
  await client.sendTransaction(Uint8Array.of(1, 2, 3, 255));
  await client.sendTransaction("AQID", {
    skipPreflight: false,
    preflightCommitment: "processed",
    maxRetries: 0,
    minContextSlot: 2n ** 63n,
    mevProtect: true,
    swqosOnly: true,
    encoding: "base64",
  });
  const params = (i: number): string => /"params":(.*)}$/.exec(requests[i]?.body ?? "")?.[1] ?? "";
  expect(params(0)).toBe('["AQID/w==",{"encoding":"base64","skipPreflight":true}]');
  expect(params(1)).toBe(
    '["AQID",{"encoding":"base64","skipPreflight":false,"preflightCommitment":"processed",' +
      '"maxRetries":0,"minContextSlot":9223372036854775808}]',
  );
  expect(requests.map((each) => each.url)).toEqual([
    "/relay",
    "/relay?swqos-only=true&mev-protect=true",
  ]);
});

it("describes a response that is not from the service", async () => {
  const strange: [Answer, number][] = [
    [says("<html>Bad Gateway</html>", 502), 502],
    [says("", 200), 200],
    [says('{"jsonrpc":"2.0","id":1}'), 200],
    [says('{"jsonrpc":"2.0","error":"no","id":1}'), 200],
    [says("[]"), 200],
    [says('{"jsonrpc":"2.0","result":["a"'), 200],
  ];
  for (const [answer, status] of strange) {
    const { url } = await serverOf(answer);
    const error = await failure(new ShredwayClient({ url }).getTipAccounts());
    expect(error).toMatchObject({ reason: "answer_invalid", httpStatus: status, code: null });
    expect(error.message).toContain(`got HTTP ${status}`);
  }
  const { url } = await serverOf(says('{"jsonrpc":"2.0","result":["a",7],"id":1}'));
  const error = await failure(new ShredwayClient({ url }).getTipAccounts());
  expect(error.message).toBe(
    "answer_invalid: getTipAccounts[1]: invalid value 7; expected a string",
  );
});

it("handles late, cut, rejected and redirected responses within its timeout", async () => {
  const silent = await serverOf(() => undefined);
  const late = await failure(new ShredwayClient({ url: silent.url, timeoutMs: 50 }).getHealth());
  expect(late).toMatchObject({ reason: "timeout", httpStatus: null });
  expect(late.message).toContain("within 50 ms");
  const half = await serverOf((response) => {
    response.writeHead(200, { "content-length": "100" }).write("ha", () => response.destroy());
  });
  expect(await failure(new ShredwayClient({ url: half.url }).getTier())).toMatchObject({
    reason: "unreachable",
  });
  const other = await serverOf(ok);
  const moved = await serverOf((response) => {
    response.writeHead(307, { location: `${other.url}/relay` }).end();
  });
  const client = new ShredwayClient({ url: `${moved.url}/?api-key=secret` });
  expect(await failure(client.getTipAccounts())).toMatchObject({ reason: "unreachable" });
  expect(other.requests).toEqual([]);
  const nobody = await failure(
    new ShredwayClient({ url: `http://127.0.0.1:${await freePort()}` }).getHealth(),
  );
  expect(nobody.message).toMatch(/^unreachable: \/gethealth: .*ECONNREFUSED/);
});

it("says what happened at each address of a host", async () => {
  const { error, text } = await refusedHost();
  const failing = () => Promise.reject(new TypeError("fetch failed", { cause: error }));
  const client = new ShredwayClient({ url: "http://two.example", fetch: failing });
  expect((await failure(client.getHealth())).message).toContain(`got none: ${text}`);
});

it("retries reads by the client's option, and submissions only by the call's option", async () => {
  const reads = await serverOf(limited, limited, ok);
  const retryingClient = new ShredwayClient({ url: reads.url, readRetries: 2 });
  expect(await retryingClient.getTipAccounts()).toEqual(["tip"]);
  expect(reads.requests.length).toBe(3);
  const single = await serverOf(limited);
  expect(await failure(new ShredwayClient({ url: single.url }).getTier())).toMatchObject({
    reason: "rate_limited",
    code: -32_005,
    httpStatus: 429,
    retryAfterSeconds: 0,
    data: { limit: 9 },
  });
  expect(single.requests.length).toBe(1);
  const submissions = await serverOf(
    limited,
    limited,
    says('{"jsonrpc":"2.0","result":"s","id":1}'),
  );
  const sender = new ShredwayClient({ url: submissions.url, readRetries: 5 });
  expect(await failure(sender.sendTransaction("AA=="))).toMatchObject({ reason: "rate_limited" });
  expect(submissions.requests.length).toBe(1);
  expect(await sender.sendTransaction("AA==", { retries: 1 })).toBe("s");
  const wrong = await serverOf(
    rpcError({ code: -32_602, message: "x", data: { reason: "tip_missing" } }),
  );
  const error = await failure(
    new ShredwayClient({ url: wrong.url }).sendTransaction("AA==", { retries: 3 }),
  );
  expect([error.reason, wrong.requests.length]).toEqual(["tip_missing", 1]);
});

it("respects Retry-After, and an abort ends the wait", async () => {
  const error = rpcError(
    { code: -32_005, message: "nonce_pending: soon", data: { reason: "nonce_pending" } },
    200,
    {
      "retry-after": "3600",
    },
  );
  const { url, requests } = await serverOf(error);
  const controller = new AbortController();
  const reason = new Error("enough");
  const waiting = new ShredwayClient({ url }).getNonce("n", {
    retries: 9,
    signal: controller.signal,
  });
  await until(() => requests.length > 0, "the request");
  // The response has arrived: only Retry-After is pending.
  await new Promise((done) => setTimeout(done, 20));
  controller.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  expect(requests.length).toBe(1);
});

it("waits without a limit if the timeout is longer than a timer can be", async () => {
  const held: ServerResponse[] = [];
  const { url } = await serverOf((response) => held.push(response));
  const client = new ShredwayClient({ url, timeoutMs: Infinity });
  const accounts = client.getTipAccounts();
  await until(() => held.length === 1, "the request");
  held[0]?.end('{"jsonrpc":"2.0","result":["tip"],"id":1}');
  expect(await accounts).toEqual(["tip"]);
  const controller = new AbortController();
  const reason = new Error("enough");
  const options = { timeoutMs: Infinity, signal: controller.signal };
  const ended = client.waitForEnd("1".repeat(64), options);
  await until(() => held.length === 2, "the call for the status");
  controller.abort(reason);
  await expect(ended).rejects.toBe(reason);
});

it("an abort before and during a call throws the signal's reason", async () => {
  const { url, requests } = await serverOf(() => undefined);
  const client = new ShredwayClient({ url });
  const reason = new Error("enough");
  await expect(client.getHealth({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(requests.length).toBe(0);
  const controller = new AbortController();
  const waiting = client.getHealth({ signal: controller.signal, retries: 9 });
  await until(() => requests.length > 0, "the request");
  controller.abort(reason);
  await expect(waiting).rejects.toBe(reason);
});

it("reports the gateway's errors by their reasons", async () => {
  const gateway = await GatewayRun.open();
  const as = (key: string) => new ShredwayClient({ url: gateway.url(`/relay?api-key=${key}`) });
  expect(await failure(as("wrong").getTipAccounts())).toMatchObject({
    reason: "unauthorized",
    code: -32_600,
    httpStatus: 401,
  });
  const keyless = new ShredwayClient({ url: gateway.url("/") });
  expect(await failure(keyless.getTier())).toMatchObject({ reason: "unauthorized" });
  expect(await failure(as("reader").sendTransaction("AA=="))).toMatchObject({
    reason: "scope_missing",
  });
  expect(await failure(as("good").getTier())).toMatchObject({ reason: "registration_off" });
  const unregistered = await failure(as("good").registerTips([{ transaction: "AA==", slot: 1 }]));
  expect(unregistered).toMatchObject({ reason: "registration_off", code: null, httpStatus: 404 });
  expect(unregistered.message).toMatch(/^registration_off: this service does not sell shreds/);
  expect(await failure(as("good").getNonce())).toMatchObject({ reason: "upstream_missing" });
  expect(await failure(as("submitter").sendBatch(["AA=="]))).toMatchObject({
    reason: "scope_missing",
  });
  const many = Array.from({ length: 26 }, () => "AA==");
  const batch = await failure(as("batcher").sendBatch(many));
  expect(batch.message).toBe("request size 26 exceeded max batch size 25");
  expect(batch).toMatchObject({ reason: "batch_refused", data: { size: 26, max: 25 } });
  const huge = await failure(as("good").sendTransaction("A".repeat(20_000)));
  expect(huge).toMatchObject({ reason: "body_too_large", httpStatus: 413 });
  expect(await as("good").nextAltValidator()).toBe(null);
  expect(await failure(as("good").nextAltValidator(-1))).toMatchObject({ reason: "value_invalid" });
  expect(await failure(keyless.tipFloor())).toMatchObject({
    reason: "path_unknown",
    httpStatus: 404,
  });
  gateway.verdict = () => ({
    allowed: false,
    limit: 5,
    remaining: 0,
    retryAfterSeconds: 1.5,
    resetSeconds: 2,
  });
  expect(await failure(as("good").getRegions())).toMatchObject({
    reason: "rate_limited",
    retryAfterSeconds: 2,
    httpStatus: 429,
  });
});

it("reads slots beyond 2^53 exactly", async () => {
  const gateway = await GatewayRun.open();
  const signature = "1".repeat(64);
  const slot = 2n ** 63n + 1n;
  gateway.statuses.set(`a_1 ${signature}`, {
    signature,
    state: "landed",
    method: "sendTransaction",
    bundleId: null,
    receivedNs: 1_000_000n,
    slot,
    reason: "confirmed",
    err: null,
    events: [{ kind: "seen", atNs: 2_500_000n, slot }],
  });
  const client = new ShredwayClient({ url: gateway.url() });
  expect(await client.getTransactionStatus(signature)).toMatchObject({
    slot,
    events: [{ kind: "seen", slot, offsetMs: 1.5, at: "1970-01-01T00:00:00.002Z" }],
  });
  const other = `${"1".repeat(63)}2`;
  expect(await client.getTransactionStatus([other, signature])).toMatchObject([null, { slot }]);
  expect(await client.getTransactionStatus(other)).toBe(null);
  expect(await failure(client.waitForEnd(other))).toMatchObject({ reason: "submission_unknown" });
});

it("calls health at an interval, over one connection, until it is stopped", async () => {
  const gateway = await GatewayRun.open();
  const proxy = closing(await CutProxy.open(gateway.url()));
  let calls = 0;
  const failures: unknown[] = [];
  const client = new ShredwayClient({
    url: proxy.through(gateway.url()),
    fetch: async (...request) => {
      const answer = await fetch(...request);
      calls++;
      if (calls === 2) throw new ShredwayError("internal", "planted");
      return answer;
    },
  });
  expect(() => client.keepAlive(5)).toThrow("intervalMs: expected 100 or more, got 5");
  const warm = client.keepAlive(100, { onFailure: (error) => failures.push(error) });
  await until(() => calls >= 3, "three calls");
  await warm.stop();
  expect(failures).toMatchObject([{ reason: "unreachable" }]);
  expect(proxy.accepted).toBe(1);
  const stopped = calls;
  await new Promise((done) => setTimeout(done, 250));
  expect(calls).toBe(stopped);
});
