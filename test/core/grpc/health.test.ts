// Health checks of a gRPC server by the stock client, over real sockets.

import { Client, credentials, status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { GrpcServer } from "../../../src/core/grpc/grpc-server.ts";
import { HealthService } from "../../../src/core/grpc/health.ts";
import { MessageWriter } from "../../../src/core/grpc/protobuf.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";

const asBuffer = (bytes: Buffer): Buffer => bytes;
const requestFor = (service: string): Buffer =>
  Buffer.from(new MessageWriter().string(1, service).finish());
const invalid = Buffer.from([0xff, 0xff]);

async function openHealth() {
  const health = new HealthService(["test.Echo"]);
  const server = closing(
    await GrpcServer.open({
      listen: parseEndpoint("127.0.0.1:0", { allowPortZero: true }),
      methods: health.methods,
      streams: health.streams,
      limits: { callsPerConnection: 1000 },
      clock: ManualClock.running(),
      report: (error) => {
        throw error;
      },
    }),
  );
  const client = closing(new Client(server.address, credentials.createInsecure()));
  /** The response in hexadecimal, or the name of the status. */
  const check = (request: Buffer): Promise<string> =>
    new Promise((resolve) => {
      client.makeUnaryRequest<Buffer, Buffer>(
        "/grpc.health.v1.Health/Check",
        asBuffer,
        asBuffer,
        request,
        (error, response) =>
          resolve(error ? (status[error.code] ?? "") : (response ?? Buffer.of()).toString("hex")),
      );
    });
  /** All requests at once; a valid client has one. */
  const watch = (...requests: Buffer[]) => {
    const seen = { messages: Array.of<string>(), end: "" };
    const call = client.makeBidiStreamRequest<Buffer, Buffer>(
      "/grpc.health.v1.Health/Watch",
      asBuffer,
      asBuffer,
    );
    for (const request of requests) call.write(request);
    call.end();
    call.on("data", (message: Buffer) => seen.messages.push(message.toString("hex")));
    call.on("error", (error: { code: status }) => {
      seen.end = status[error.code] ?? "";
    });
    return { seen, call };
  };
  return { health, check, watch };
}

describe("health checks", () => {
  it("say that the server and its services serve, and know no others", async () => {
    const { check } = await openHealth();
    expect(await check(Buffer.of())).toBe("0801");
    expect(await check(requestFor("test.Echo"))).toBe("0801");
    expect(await check(requestFor("test.Other"))).toBe("NOT_FOUND");
    expect(await check(invalid)).toBe("INVALID_ARGUMENT");
  });

  it("tell watchers of the end", async () => {
    const { health, watch } = await openHealth();
    const known = watch(requestFor("test.Echo")).seen;
    const unknown = watch(requestFor("test.Other")).seen;
    await until(() => known.messages.length + unknown.messages.length === 2, "the states");
    expect(known.messages).toEqual(["0801"]);
    expect(unknown.messages).toEqual(["0803"]);
    health.close();
    await until(() => known.end !== "", "the end");
    expect(known).toEqual({ messages: ["0801", "0802"], end: "UNAVAILABLE" });
    expect(unknown.end).toBe("");
  });

  it("end watchers that send more than one short request", async () => {
    const { watch } = await openHealth();
    const twice = watch(requestFor("test.Echo"), requestFor("test.Echo")).seen;
    const long = watch(requestFor("a".repeat(2000))).seen;
    await until(() => twice.end !== "" && long.end !== "", "both ends");
    expect(twice.end).toBe("INVALID_ARGUMENT");
    expect(twice.messages.length).toBeLessThanOrEqual(1);
    expect(long).toEqual({ messages: [], end: "RESOURCE_EXHAUSTED" });
  });

  it("are limited in number", async () => {
    const { watch } = await openHealth();
    const all = Array.from({ length: 256 }, () => watch(requestFor("")));
    await until(() => all.every(({ seen }) => seen.messages.length === 1), "all states");
    const { seen } = watch(requestFor(""));
    await until(() => seen.end !== "", "the refusal");
    expect(seen.end).toBe("RESOURCE_EXHAUSTED");
    all[0]?.call.cancel();
    await until(() => all[0]?.seen.end === "CANCELLED", "the cancellation");
    // The server may learn of it after the next call.
    for (let next = watch(requestFor("")).seen; next.messages.length === 0; ) {
      await until(() => next.messages.length > 0 || next.end !== "", "a response");
      if (next.end !== "") next = watch(requestFor("")).seen;
    }
  });
});
