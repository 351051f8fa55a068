// Member lists from a server with configurable answers: valid, invalid, late, endless.

import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fetchMembers,
  membersMax,
  parseMembers,
} from "../../../src/platform/solana/member-list.ts";
import { closing } from "../../support/closing.ts";
import { addressOf, wallet } from "../../support/transactions/chain.ts";

const [a, b] = [addressOf(wallet(1)), addressOf(wallet(2))];

/** A URL with a key in its path, one in its query, and a user. */
async function openServer(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing({
    close() {
      server.close();
      server.closeAllConnections();
    },
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const { port } = server.address() as AddressInfo;
  return `http://someone:password@127.0.0.1:${port}/secret-path?key=secret-key`;
}

const text =
  (body: string, status = 200): RequestListener =>
  (_, response) => {
    response.statusCode = status;
    response.end(body);
  };

async function failureOf(url: string, timeoutMs?: number): Promise<string> {
  const error: unknown = await fetchMembers(url, timeoutMs).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ reason: "rpc_failed" });
  const all = inspect(error, { depth: 9 });
  for (const secret of ["secret-path", "secret-key", "someone", "password"]) {
    expect(all).not.toContain(secret);
  }
  return error instanceof Error ? error.message : "";
}

describe("fetchMembers", () => {
  it("reads an array of identities, and an object with identities as keys", async () => {
    const seen: (string | undefined)[] = [];
    const url = await openServer((request, response) => {
      seen.push(request.url, request.headers.authorization, request.method);
      text(JSON.stringify([a, b, a]))(request, response);
    });
    expect([...(await fetchMembers(url))]).toEqual([a, b]);
    const basic = `Basic ${Buffer.from("someone:password").toString("base64")}`;
    expect(seen).toEqual(["/secret-path?key=secret-key", basic, "GET"]);
    const withSlots = await openServer(text(JSON.stringify({ [b]: [1, 2], [a]: [] })));
    expect([...(await fetchMembers(withSlots))]).toEqual([b, a]);
    expect([...(await fetchMembers(await openServer(text("[]"))))]).toEqual([]);
  });

  it.each<[string, RequestListener, RegExp]>([
    ["no JSON", text("<html>"), /^members at 127\.0\.0\.1:\d+: .*JSON/],
    ["nothing", text(""), /JSON/],
    ["a text", text(`"${a}"`), /expected an array or an object of identities, got "/],
    ["null", text("null"), /expected an array or an object of identities, got null/],
    ["an invalid one", text(JSON.stringify([a, "x"])), /identities in base58 only, got "x" at 1$/],
    ["numbers", text(JSON.stringify([1])), /identities in base58 only, got 1 at 0$/],
    ["another object", text('{"error":"no"}'), /identities in base58 only, got "error" at 0$/],
    ["a prototype", text('{"__proto__":[]}'), /got "__proto__" at 0$/],
    [
      "too many",
      text(JSON.stringify(Array(membersMax + 1).fill(a))),
      /at most 4096 identities, got 4097/,
    ],
    ["another status", text(JSON.stringify([a]), 500), /expected HTTP status 200, got 500$/],
    [
      "its own address",
      text(JSON.stringify(["secret-path secret-key"])),
      /got "\[masked\] \[masked\]"/,
    ],
    ["the connection's end", (request) => void request.socket.destroy(), /./],
  ])("refuses %s as a whole", async (_, answer, expected) => {
    expect(await failureOf(await openServer(answer))).toMatch(expected);
  });

  it("stops reading an endless answer at its limit", async () => {
    let written = 0;
    const url = await openServer((_, response) => {
      const write = (): void => {
        while (!response.destroyed && response.write(" ".repeat(65_536))) written += 65_536;
        if (!response.destroyed) response.once("drain", write);
      };
      write();
    });
    expect(await failureOf(url)).toMatch(/expected at most 2097152 bytes, got more/);
    expect(written).toBeLessThan(64 * 1024 * 1024);
  });

  it("ends at its time limit", async () => {
    expect(await failureOf(await openServer(() => undefined), 50)).toMatch(/timeout/);
    const halfway = await openServer((_, response) => void response.write("["));
    expect(await failureOf(halfway, 50)).toMatch(/timeout|aborted/);
  });
});

describe("parseMembers", () => {
  it("accepts only identities, for any input", () => {
    const names = Array.from({ length: 5 }, (_, i) => addressOf(wallet(i + 1)));
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.constantFrom(...names), fc.jsonValue())), (list) => {
        const isGood = list.every((one) => typeof one === "string" && names.includes(one));
        const read = () => parseMembers(JSON.stringify(list));
        if (isGood) expect(read()).toEqual(new Set(list));
        else expect(read).toThrow(/^expected identities in base58 only, got /);
      }),
      { numRuns: 300 },
    );
  });
});
