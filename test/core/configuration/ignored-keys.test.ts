// The warning about keys that only a gateway uses, in a file without a gateway.

import { expect, it } from "vitest";
import { configWarnings, parseConfig } from "../../../src/core/configuration/configuration.ts";
import { configSchema, unwrapSchema } from "../../../src/core/configuration/schema.ts";
import { path } from "./config-texts.ts";

const relay = "relay: { shredVersion: 1, authentication: off }\n";
const tip = `addresses: ["${"1".repeat(32)}"]`;
const warningsOf = (text: string) => configWarnings(parseConfig(text, path));

function keysOf(schema: unknown): string[] {
  const shape = schema instanceof Object && "shape" in schema ? schema.shape : undefined;
  return Object.keys(shape ?? {});
}

it("names the keys of the file that only a gateway uses", () => {
  const text = `${relay}
routes: [{ name: builder, kind: block-builder, url: "http://127.0.0.1:1/" }]
tips: { minimumLamports: 5 }
data: { directory: /var/lib/shredway, postgres: "postgres://shredway@127.0.0.1/shredway" }
`;
  expect(warningsOf(text)).toEqual([
    "configuration: http is missing, so the service runs no gateway and ignores these keys: " +
      "routes, tips, data.postgres; add http, or remove them",
  ]);
  expect(warningsOf(`${text}http: {}\n`.replace("minimumLamports: 5", tip))).toEqual(
    warningsOf(`${relay}http: {}\ntips: { ${tip} }\n`),
  );
});

it("does not name the keys that a relay uses", () => {
  const text = `${relay}
solana: { rpc: "http://127.0.0.1:1/" }
operations: { listen: "127.0.0.1:9780", destinationSeries: 5 }
data: { directory: /var/lib/shredway }
shredstream: { listen: "127.0.0.1:10000", subscribers: [] }
`;
  expect(warningsOf(text)).toEqual([]);
  const ofGateway = text
    .replace('1/" }', '1/", websocket: "ws://127.0.0.1:2/" }')
    .replace("destinationSeries: 5", "allow: []");
  expect(warningsOf(ofGateway).join()).toContain(": solana.websocket, operations.allow; add http");
});

it("knows of each section whether a relay uses it", () => {
  const ofRelay = ["solana", "relay", "shredstream", "operations", "data"];
  const refused = ["streams", "quic"];
  const wanted = Object.keys(configSchema.shape).filter(
    (section) => ![...ofRelay, ...refused, "http"].includes(section),
  );
  const values: Record<string, string> = {
    region: "fra",
    regions: "[{ name: fra }]",
    routes: "[]",
  };
  const file = relay + wanted.map((key) => `${key}: ${values[key] ?? "{}"}\n`).join("");
  expect(warningsOf(file).join()).toContain(`keys: ${wanted.join(", ")}; add`);
});

it("knows of each key of data whether a relay uses it", () => {
  const text = `${relay}
data: { directory: a, node: b, postgres: "postgres://c@127.0.0.1/c", durableSubmissions: true, historyHours: 1 }
`;
  const keys = keysOf(unwrapSchema(configSchema.shape.data)).filter((key) => key !== "directory");
  expect(warningsOf(text).join()).toContain(`: ${keys.map((key) => `data.${key}`).join(", ")};`);
});
