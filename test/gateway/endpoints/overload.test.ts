// More submissions than the event loop can process, over real sockets. The test makes the turns.

import { describe, expect, it } from "vitest";
import { submissionsPerTurn } from "../../../src/gateway/endpoints/submission-queue.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { SubmissionClient } from "../../support/gateway/submission-client.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";

const wire = tipping();

async function opened(): Promise<{ run: GatewayRun; turn: () => void }> {
  const turns: (() => void)[] = [];
  const run = await GatewayRun.open({}, { inNextTurn: (action) => turns.push(action) });
  const turn = (): void => {
    for (const action of turns.splice(0)) action();
  };
  return { run, turn };
}

describe("submissions beyond those of a turn", () => {
  const ways = {
    "a call in JSON": (run: GatewayRun) => run.call("sendTransaction", [base64(wire)]),
    "a body of bytes": (run: GatewayRun) => run.post(wire, "/relayb?api-key=good"),
    "a body of base64": (run: GatewayRun) => run.post(base64(wire), "/relay2?api-key=good"),
  };

  it.each(Object.entries(ways))("wait for the next one: %s", async (_, send) => {
    const { run, turn } = await opened();
    const answers = Array.from({ length: submissionsPerTurn + 2 }, () => send(run));
    await Promise.race(answers);
    await until(() => run.gateway.submissionQueue.counts.waiting === 2, "two that wait");
    expect(run.submitted).toHaveLength(submissionsPerTurn);
    turn();
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
    expect(run.submitted).toHaveLength(submissionsPerTurn + 2);
  });

  it("have the time of their arrival, and the options and headers of their requests", async () => {
    const { run, turn } = await opened();
    const answers = Array.from({ length: submissionsPerTurn }, () =>
      run.post(wire, "/relayb?api-key=good"),
    );
    await until(() => run.submitted.length === submissionsPerTurn, "a full turn");
    const arrivedNs = run.clock.nowNs();
    const later = run.post(wire, "/relayb?api-key=good&swqos-only=true", {
      origin: "https://a.example",
    });
    await until(() => run.gateway.submissionQueue.counts.waiting === 1, "one that waits");
    run.clock.move(100);
    turn();
    const { status, headers } = await later;
    expect(status).toBe(200);
    expect(headers.get("access-control-expose-headers")).toContain("x-shredway-receipt");
    expect(run.submitted.at(-1)).toMatchObject({
      receivedNs: arrivedNs,
      options: { swqosOnly: true },
    });
    await Promise.all(answers);
  });

  it.each(Object.entries(ways))("are refused after a slot: %s", async (_, send) => {
    const { run, turn } = await opened();
    const answers = Array.from({ length: submissionsPerTurn + 1 }, () => send(run));
    await until(() => run.gateway.submissionQueue.counts.waiting === 1, "one that waits");
    run.clock.move(401);
    turn();
    const refused = (await Promise.all(answers)).filter(({ status }) => status === 429);
    expect(refused).toMatchObject([
      {
        body: {
          error: {
            message: expect.stringContaining(
              "submissions arrive faster than they can be processed",
            ),
            data: { reason: "overloaded" },
          },
          id: null,
        },
      },
    ]);
    expect(refused[0]?.headers.get("retry-after")).toBe("1");
    expect(run.submitted).toHaveLength(submissionsPerTurn);
    expect(run.gateway.submissionQueue.counts.timedOut).toBe(1);
  });

  it("do not delay other calls", async () => {
    const { run, turn } = await opened();
    const answers = Array.from({ length: submissionsPerTurn + 1 }, () =>
      run.call("sendTransaction", [base64(wire)]),
    );
    await until(() => run.gateway.submissionQueue.counts.waiting === 1, "one that waits");
    expect(await run.call("getHealth")).toMatchObject({ status: 200, body: { result: "ok" } });
    expect(await run.post("", "/relayb?api-key=good")).toMatchObject({ status: 200 });
    turn();
    await Promise.all(answers);
  });

  it("get a response frame on the WebSocket", async () => {
    const { run, turn } = await opened();
    const caller = await SubmissionClient.open(run);
    for (let i = 0; i <= submissionsPerTurn; i++) caller.send(wire);
    await until(() => run.gateway.submissionQueue.counts.waiting === 1, "one that waits");
    run.clock.move(401);
    turn();
    await until(() => caller.frames.length > submissionsPerTurn, "all responses");
    expect(caller.frames.at(-1)).toMatchObject({
      status: 503,
      body: expect.stringContaining("submissions arrive faster than they can be processed"),
    });
  });
});
