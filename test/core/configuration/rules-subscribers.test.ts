import { expect, it } from "vitest";
import { least, messageOf } from "./config-texts.ts";

it.each([
  [
    "an unknown tier of a subscriber",
    `${least}shredstream: { subscribers: [{ name: a, publicKey: "${"1".repeat(32)}", tier: x }] }\n`,
    /shredstream.subscribers\[0\].tier: unknown tier "x"; expected a tier of relay.tiers/,
  ],
  [
    "a subscriber twice",
    `${least}shredstream: { subscribers: [{ name: a, publicKey: "${"1".repeat(32)}", tier: tier-1 }, { name: b, publicKey: "${"1".repeat(32)}", tier: tier-1 }] }\n`,
    /shredstream.subscribers\[1\].publicKey: duplicate publicKey "1{32}" \(also subscribers\[0\]\)/,
  ],
  [
    "two subscribers of one name",
    `${least}shredstream: { subscribers: [{ name: a, publicKey: "${"1".repeat(32)}", tier: tier-1 }, { name: a, publicKey: "${"1".repeat(31)}2", tier: tier-1 }] }\n`,
    /shredstream.subscribers\[1\].name: duplicate name "a" \(also subscribers\[0\]\)/,
  ],
])("rejects %s", (_what, text, message) => {
  expect(messageOf(text)).toMatch(message);
});
