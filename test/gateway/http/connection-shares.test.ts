import { array, assert, boolean, integer, property, tuple } from "fast-check";
import { expect, it } from "vitest";
import { ConnectionShares } from "../../../src/gateway/http/connection-shares.ts";

interface Connection {
  readonly name: number;
  readonly caller: string;
  readonly idleSinceMs: number | null;
}

const event = tuple(boolean(), integer({ min: 0, max: 4 }), integer({ min: -3, max: 20 }));

it("ends an idle connection of a caller with the most, or the new one", () => {
  assert(
    property(array(event, { maxLength: 60 }), (events) => {
      const shares = new ConnectionShares<Connection>();
      const open: Connection[] = [];
      for (const [name, [isOpened, caller, value]] of events.entries()) {
        if (isOpened) {
          const idleSinceMs = value < 0 ? null : value;
          const connection = { name, caller: String(caller), idleSinceMs };
          open.push(connection);
          shares.add(connection);
          expect(endable(open)).toContain(shares.surplus(connection));
        } else {
          for (const closed of open.splice(value, 1)) shares.delete(closed);
        }
      }
    }),
  );
});

/** The connections that may end; the newest of `open` is the last. At most 16 connections of a caller are compared. */
function endable(open: readonly Connection[]): Connection[] {
  const newest = open.slice(-1);
  const ofCaller = (wanted: string) => open.filter(({ caller }) => caller === wanted);
  const callers = [...new Set(open.map(({ caller }) => caller))];
  const most = Math.max(...callers.map((caller) => ofCaller(caller).length));
  if (most === 1) return newest;
  const largest = callers.filter((caller) => ofCaller(caller).length === most);
  const own = largest.filter((caller) => caller === newest[0]?.caller);
  return (own.length > 0 ? own : largest).flatMap((caller) => {
    const idle = ofCaller(caller).filter(
      (each) => !newest.includes(each) && each.idleSinceMs !== null,
    );
    const longest = Math.min(...idle.map(({ idleSinceMs }) => idleSinceMs ?? 0));
    if (idle.length === 0) return newest;
    return most > 16 ? [...idle, ...newest] : idle.filter((each) => each.idleSinceMs === longest);
  });
}

it("finds an idle connection behind many that are used", () => {
  const shares = new ConnectionShares<Connection>();
  const add = (name: number, caller: string, idleSinceMs: number | null): Connection => {
    const connection = { name, caller, idleSinceMs };
    shares.add(connection);
    return connection;
  };
  for (let name = 0; name < 20; name++) add(name, "many", null);
  const idle = add(20, "many", 5);
  const newest = add(21, "one", 6);
  expect(shares.surplus(newest)).toBe(newest);
  expect(shares.surplus(newest)).toBe(idle);
});
