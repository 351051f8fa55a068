// kill -9 of a service with an open stream: the client gets a status, and a new service serves it again.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { status } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { LineReader } from "../../bench/load/http-load.ts";
import { textOf } from "../../bench/report/lines.ts";
import { closing } from "../support/closing.ts";
import { until } from "../support/network/udp-receiver.ts";
import { childProgramWords } from "../support/processes/child-program.ts";
import { subscribeDeshred } from "../support/streams/stream-clients.ts";

const program = fileURLToPath(new URL("../../bench/load/streams-process.ts", import.meta.url));
const request = { deshred_transactions: { all: {} }, ping: { id: 1 } };

async function startService() {
  const words = [...(await childProgramWords(program)), "00".repeat(32), "127.0.0.9:20020"];
  const child = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] });
  closing({ close: () => void child.kill("SIGKILL") });
  const address = textOf(await new LineReader(child).next(), "streams");
  return { child, address };
}

it("ends the stream with UNAVAILABLE, and the client can subscribe again", async () => {
  const first = await startService();
  const client = subscribeDeshred(first.address, request);
  await until(() => client.messages.some(({ update }) => update === "pong"), "the pong");
  first.child.kill("SIGKILL");
  await until(() => client.end !== undefined, "the end of the stream");
  expect(client.end?.code).toBe(status.UNAVAILABLE);
  const second = await startService();
  const again = subscribeDeshred(second.address, request);
  await until(() => again.messages.some(({ update }) => update === "pong"), "the pong again");
  expect(again.end).toBeUndefined();
});
