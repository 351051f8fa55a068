import { expect, it } from "vitest";
import { createLogger } from "../../src/core/log.ts";
import { ReceiveReport } from "../../src/relay/receive-report.ts";

function makeReport(receiveInterfaces: string | null) {
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const state = { problems: [] as readonly string[] };
  const relay = { receiveInterfaces, updateReceiving: () => state.problems };
  const taken = () => lines.splice(0).map((line) => JSON.parse(line));
  return { report: new ReceiveReport(relay, log), state, taken };
}

it("names the interfaces at the start", () => {
  const { report, taken } = makeReport("eth1 (copies)");
  report.logStart();
  expect(taken()).toMatchObject([
    { interface: "eth1 (copies)", msg: expect.stringContaining("relay: receive=xdp") },
  ]);
});

it("reports each problem once, and the end of all", () => {
  const { report, state, taken } = makeReport("eth1 (copies), eth2 (copies)");
  const down = "eth1: it is down; AF_XDP continues when it is up";
  const removed = "eth2: it was removed; restart the service if it is back";
  const messages = (problems: readonly string[]) => {
    state.problems = problems;
    report.check();
    return taken().map(({ msg }) => msg);
  };
  expect(messages([])).toEqual([]);
  expect(messages([down])).toEqual([
    `relay: AF_XDP does not receive on ${down}. Until it does, sockets receive what arrives there`,
  ]);
  expect(messages([down])).toEqual([]);
  expect(messages([down, removed])).toEqual([
    `relay: AF_XDP does not receive on ${removed}. Until it does, sockets receive what arrives there`,
  ]);
  expect(messages([])).toEqual(["relay: AF_XDP receives again on all of its interfaces"]);
  expect(messages([])).toEqual([]);
});

it("is silent without AF_XDP", () => {
  const { report, state, taken } = makeReport(null);
  state.problems = ["eth1: it is down"];
  report.logStart();
  report.check();
  expect(taken()).toEqual([]);
});
