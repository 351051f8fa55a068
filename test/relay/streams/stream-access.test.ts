// The URLs of gRPC calls: their API key, and parameters that no call has.

import { once } from "node:events";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { status } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { frameMessage } from "../../../src/core/grpc/status.ts";
import { closing } from "../../support/closing.ts";
import { runningStreams } from "../../support/streams/stream-clients.ts";

/** Status and message of a call, which are in the trailers, or in the headers of a call that is refused at once. */
async function endOf(path: string): Promise<readonly [number, string]> {
  const { service } = await runningStreams();
  const session = connect(`http://${service.address}`);
  closing({ close: () => session.destroy() });
  const call = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  call.on("data", () => undefined);
  let received: IncomingHttpHeaders = {};
  const keep = (headers: IncomingHttpHeaders): void => {
    received = { ...received, ...headers };
  };
  call.on("response", keep);
  call.on("trailers", keep);
  call.end(frameMessage(new Uint8Array()));
  await once(call, "close");
  const message = decodeURIComponent(String(received["grpc-message"] ?? ""));
  return [Number(received["grpc-status"]), message];
}

const unary = "/geyser.Geyser/GetVersion";
const unknown = (name: string) => [
  status.INVALID_ARGUMENT,
  `unknown URI parameter "${name}"; expected api-key`,
];

it.each(["?api-key=alice", "?api-key=alice&api-key=alice", "?&api-key=alice&"])(
  "accepts %s",
  async (query) => {
    expect(await endOf(`${unary}${query}`)).toEqual([status.OK, ""]);
  },
);

it("accepts a key before the method, and an empty query", async () => {
  expect(await endOf(`/alice${unary}?`)).toEqual([status.OK, ""]);
});

it.each([
  "/geyser.Geyser/GetVersion",
  "/geyser.Geyser/SubscribeDeshred",
  "/shredstream.ShredstreamProxy/SubscribeEntries",
])("refuses a parameter that no call has: %s", async (path) => {
  expect(await endOf(`${path}?api-key=alice&from-slot=120`)).toEqual(unknown("from-slot"));
  expect(await endOf(`/alice${path}?api_key=alice`)).toEqual(unknown("api_key"));
});

it("does not repeat a key that stands in the place of a name", async () => {
  expect(await endOf(`/alice${unary}?sw_secret`)).toEqual(unknown("sw_…"));
});

it("refuses two different keys in one URL", async () => {
  const [code, message] = await endOf(`${unary}?api-key=alice&api-key=bob`);
  expect(code).toBe(status.UNAUTHENTICATED);
  expect(message).toMatch(/^the call contains different API keys; /);
});
