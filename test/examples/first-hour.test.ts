// docs/first-hour.md, literally: runs every command of the document in order, with free ports.
//
// The test itself starts the sandbox. The document kills it, by its process id.

import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePortPair, freeUdpPort } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { InstalledPackage, type Program } from "./installed-package.ts";

const blocks = Array.from(
  readFileSync("docs/first-hour.md", "utf8").matchAll(/^```sh\n(.*?)^```$/gms),
  ([, code = ""]) => code,
);
const isStart = (block: string): boolean => /^npm (ci && npm )?start\n$/.test(block);
const isKill = (block: string): boolean => block.startsWith("kill ");
const hasCurl = spawnSync("curl", ["--version"]).status === 0;

let installed: InstalledPackage;
let sandbox: Program | undefined;
let ports: ReadonlyMap<string, number>;
let output = "";

async function start(): Promise<void> {
  const at = (port: string): string => `127.0.0.1:${ports.get(port)}`;
  const addresses = [
    "--http",
    at("8780"),
    "--udp",
    at("20000"),
    "--rpc",
    at("8899"),
    "--streams",
    at("10000"),
    "--quic",
    "127.0.0.1:0",
  ];
  const started = installed.start("dist/tools/shredway.js", "start", ...addresses);
  sandbox = started;
  await until(() => started.stdout.includes("\nready "), "the sandbox");
}

/** One shell for several blocks, like one terminal of a user. Settles with its output. */
function typed(commands: string): Promise<string> {
  const words = ["-c", commands];
  return new Promise((resolve) => {
    execFile("bash", words, { cwd: installed.folder }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}

/** Runs the command that kills the sandbox, and waits for its end. */
async function killed(block: string): Promise<string> {
  const said = await typed(block);
  const code = await sandbox?.ended; // null: a signal ended it
  return `${said}the sandbox ended with ${code}\n`;
}

function withPorts(text: string): string {
  return text.replaceAll(/\b(8780|8899|10000|20001|20301)\b/g, (port) => String(ports.get(port)));
}

beforeAll(async () => {
  installed = await InstalledPackage.open();
  const udp = await freePortPair();
  ports = new Map([
    ["8780", await freePortPair()],
    ["8899", await freePortPair()],
    ["10000", await freePortPair()],
    ["20000", udp],
    ["20001", udp + 1],
    ["20301", await freeUdpPort()],
  ]);
  let variables = "";
  let stretch = "";
  const runStretch = async (): Promise<void> => {
    if (stretch !== "") output += await typed(withPorts(variables + stretch));
    stretch = "";
  };
  for (const block of blocks) {
    if (isStart(block) || isKill(block)) await runStretch();
    if (isStart(block)) await start();
    else if (isKill(block)) output += await killed(block);
    else if (block.startsWith("URL=")) variables = block;
    else stretch += block;
  }
  await runStretch();
}, 480_000);

afterAll(async () => {
  await sandbox?.close();
  installed.close();
});

describe.skipIf(!hasCurl)("docs/first-hour.md", () => {
  it("has its blocks", () => {
    expect(blocks.filter(isStart)).toHaveLength(2);
    expect(blocks.filter(isKill)).toHaveLength(1);
    expect(blocks.length).toBeGreaterThan(10);
  });

  it.each([
    ["a transaction", /^\w{87,88} is confirmed in slot \d+$/m],
    ["a pair", /\b(landed\b[\s\S]*superseded|superseded\b[\s\S]*landed)\b/],
    ["a comparison of senders", /^ {2}near landed more often than lossy by [^:\n]*$/m],
    ["an invalid transaction", /"code":-32602,"message":"transaction_invalid: /],
    ["a method that is unknown", /"code":-32601,"message":"method_unknown: /],
    ["a wrong key", /"code":-32600,"message":"unauthorized: /],
    ["tips", /"landed_tips_50th_percentile":\d+/],
    ["a destination", /active verified by \w+, until /],
    ["a tier", /^tier tier-1 of 200000000 lamports$/m],
    [
      "a race of two feeds with shreds",
      /^tier-2 +[1-9][\d,]* +[1-9].*\ntier-1 +[1-9][\d,]* +[1-9]/m,
    ],
    ["a decoded stream", /^received 5 transactions in /m],
    ["the kill", /^the sandbox ended with null$/m],
    ["the state after the kill", /"tier":"tier-1","sumLamports":200000000/],
    ["its destination", /"state":"active"/],
    ["one more source", /now has 2 sources/],
    ["a configuration with its secret masked", /url: https:\/\/swqos.example.com\/masked/],
    ["the doctor", /\d+ ok, \d+ to improve, \d+ to fix/],
  ])("%s", (_, pattern) => {
    expect(output).toMatch(pattern);
    expect(output).not.toContain("key=secret");
  });

  it("leaves a configuration that has both sources", () => {
    expect(readFileSync(join(installed.folder, "shredway.yaml"), "utf8")).toMatch(
      /fra-a[\s\S]*nyc-a/,
    );
  });
});
