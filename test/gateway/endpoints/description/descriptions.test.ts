// The documents as bytes: GET needs no key, so a response must cost little.

import { expect, it } from "vitest";
import { Descriptions } from "../../../../src/gateway/endpoints/description/descriptions.ts";

it("answers with the same bytes each time, until a reload changes what they show", () => {
  const region = { name: "fra", url: null, tipAddresses: [], shredTipAddresses: [] };
  const settings = { regions: [region] as const, readMethods: new Set<string>() };
  const descriptions = new Descriptions("1.0.0", settings);
  const head = {
    method: "GET",
    path: "/openapi.json",
    query: "",
    remoteAddress: "127.0.0.1",
    isTls: false,
    header: () => undefined,
  };
  for (const document of [() => descriptions.openApi(), () => descriptions.openRpc()]) {
    const { body } = descriptions.answer(head, document());
    expect(body).toBeInstanceOf(Uint8Array);
    expect(descriptions.answer(head, document()).body).toBe(body);
    Object.assign(settings, { regions: [{ ...region, name: "ams" }] });
    const changed = descriptions.answer(head, document()).body;
    expect(changed).not.toBe(body);
    expect(String(changed)).toContain("ams");
    Object.assign(settings, { regions: [region] });
  }
});
