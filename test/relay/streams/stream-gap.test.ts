// Gaps: their counts and slots, from dropped messages and from losses of the relay.

import { expect, it } from "vitest";
import { extended } from "../../../src/relay/streams/stream-gap.ts";

it("adds counts, and keeps the first and the last slot in whichever order they come", () => {
  const one = extended(null, 1, 12n);
  expect(one).toEqual({ count: 1, slots: { first: 12n, last: 12n } });
  const before = extended(one, 1, 10n);
  expect(extended(before, 2, 11n)).toEqual({ count: 4, slots: { first: 10n, last: 12n } });
});

it("counts lost messages whose slots are not known", () => {
  const lost = extended(null, 7, null);
  expect(lost).toEqual({ count: 7, slots: null });
  expect(extended(lost, 1, 3n)).toEqual({ count: 8, slots: { first: 3n, last: 3n } });
});
