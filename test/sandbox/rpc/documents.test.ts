// docs/sandbox.md lists exactly the methods of the endpoint.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { methods } from "../../../src/sandbox/rpc/methods/table.ts";
import { subscriptionKinds } from "../../../src/sandbox/rpc/subscriptions/kinds.ts";

it("docs/sandbox.md lists every method and every subscription", () => {
  const path = fileURLToPath(new URL("../../../docs/sandbox.md", import.meta.url));
  const text = readFileSync(path, "utf8").replaceAll("\n", " ");
  const listed = (from: string) =>
    (text.match(new RegExp(`${from}: ([^.]*)\\.`))?.[1] ?? "").split(", ").toSorted();
  expect(listed("Methods")).toEqual(Object.keys(methods).toSorted());
  expect(listed("Subscriptions")).toEqual(Object.keys(subscriptionKinds).toSorted());
});
