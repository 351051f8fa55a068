import { expect, it } from "vitest";
import { createLogger } from "../../src/core/log.ts";
import { ReceiveReport } from "../../src/relay/receive-report.ts";

function makeReport(receiveInterfaces: string | null) {
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const state = { problems: [] as readonly string[], misdirected: [0n, 0n] };
  const snapshot = () => ({ workers: state.misdirected.map((misdirected) => ({ misdirected })) });
  const relay = { receiveInterfaces, updateReceiving: () => state.problems };
  const taken = () => lines.splice(0).map((line) => JSON.parse(line));
  const report = new ReceiveReport(relay, log);
  return { report, check: () => report.check(snapshot()), state, taken };
}

it("names the interfaces at the start", () => {
  const { report, taken } = makeReport("eth1 (copies)");
  report.logStart();
  expect(taken()).toMatchObject([
    { interface: "eth1 (copies)", msg: expect.stringContaining("relay: receive=xdp") },
  ]);
});

it("reports each problem once, and the end of all", () => {
  const { check, state, taken } = makeReport("eth1 (copies), eth2 (copies)");
  const down = "eth1: it is down; AF_XDP continues when it is up";
  const removed = "eth2: it was removed; restart the service if it is back";
  const messages = (problems: readonly string[]) => {
    state.problems = problems;
    check();
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

it("warns once of shreds that reached the wrong worker, with the remedies", () => {
  const { check, state, taken } = makeReport(null);
  check();
  expect(taken()).toEqual([]);
  state.misdirected = [2n, 5n];
  check();
  const [warning, ...others] = taken();
  expect(others).toEqual([]);
  expect(warning.msg).toMatch(
    /^relay: 7 shreds reached a worker that does not handle their FEC sets/,
  );
  expect(warning.msg).toContain("ethtool -K IFACE tx-udp-segmentation off");
  expect(warning.msg).toContain("ethtool -K IFACE rx-gro-list off");
  state.misdirected = [2n, 50n];
  check();
  expect(taken()).toEqual([]);
});

it("is silent without AF_XDP", () => {
  const { report, check, state, taken } = makeReport(null);
  state.problems = ["eth1: it is down"];
  report.logStart();
  check();
  expect(taken()).toEqual([]);
});
