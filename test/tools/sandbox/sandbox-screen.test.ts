// The screen of a running sandbox on terminals of several sizes.

import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { runProgram } from "../../../src/tools/run-program.ts";
import { introduction } from "../../../src/tools/sandbox/sandbox-screen.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const clearScreen = "\u001b[H\u001b[2J";
const endOfFrame = "\u001b[J";
const patienceMs = 150_000;

class Screen {
  readonly isTTY = true;
  columns = 80;
  rows = 24;
  text = "";

  write(text: string): void {
    this.text += text;
  }

  /** Lines of the newest frame. */
  get frame(): string[] {
    const frames = this.text.split(endOfFrame);
    return stripVTControlCharacters(frames.at(-2) ?? "")
      .trimEnd()
      .split("\n");
  }

  shows(text: string | RegExp): boolean {
    return this.frame.some((line) =>
      typeof text === "string" ? line.includes(text) : text.test(line),
    );
  }
}

function runningScreen(): Screen {
  const screen = new Screen();
  const stopping = new AbortController();
  const any = "127.0.0.1:0";
  const data = temporaryFolder();
  const ports = ["--udp", "--rpc", "--http", "--quic", "--streams"].flatMap((name) => [name, any]);
  const words = ["start", ...ports, "--data", data];
  const code = runProgram(words, {
    stdout: screen,
    stderr: { write: () => {} },
    self: "shredway",
    environment: { NO_COLOR: "1" },
    stopSignal: () => stopping.signal,
  });
  closing({
    close: async () => {
      stopping.abort();
      expect(await code).toBe(0);
    },
  });
  return screen;
}

it("introduces the QUIC ingress with the fingerprint that clients may pin", () => {
  const lines = introduction({
    relayAddress: "127.0.0.1:1",
    rpcUrl: "http://127.0.0.1:2",
    gatewayUrl: "http://127.0.0.1:3/relay?api-key=k",
    quicAddresses: ["127.0.0.1:7000", "127.0.0.1:7001"],
    quicFingerprint: `${"5F:".repeat(31)}5F`,
    streamsAddress: "",
    workers: 1,
  });
  const quic = lines.findIndex((line) =>
    line.includes("udp 127.0.0.1:7000, protected 127.0.0.1:7001"),
  );
  expect(lines[quic + 1]).toBe(`                certificate SHA-256 ${"5f".repeat(32)}`);
});

describe("the screen of the sandbox", () => {
  it("shows what to try on every size, names what it omits, and leaves no old frame", async () => {
    const screen = runningScreen();
    await until(() => screen.shows(/^\w{12}… +open/), "an open transaction", patienceMs);
    expect(screen.frame.length).toBeLessThanOrEqual(23);
    expect(screen.frame.every((line) => line.length <= 80)).toBe(true);
    for (const command of [/curl -s "http:/, /listen --port/, /doctor/]) {
      expect(screen.shows(command)).toBe(true);
    }
    expect(screen.shows("Try next")).toBe(true);
    expect(screen.shows(/ Hidden below \d+ rows: .*routes/)).toBe(true);
    expect(screen.text).not.toContain(clearScreen);

    Object.assign(screen, { columns: 120, rows: 40 });
    await until(() => screen.shows("DESTINATION"), "the tables of a larger terminal", patienceMs);
    expect(screen.text).toContain(clearScreen);
    expect(screen.frame.length).toBeLessThanOrEqual(39);
    await until(
      () =>
        screen.shows(
          /^jito +source jito subscribed, received [1-9].* subscriber proxy subscribed, verified [1-9]/,
        ),
      "the counts of ShredStream",
      patienceMs,
    );
    expect(screen.shows(/^jito +tier-1 +[1-9]/)).toBe(true);
    expect(screen.shows(/^proxy +tier-1 +127/)).toBe(true);
    for (const title of ["Try next", "SUBMITTED", "SOURCE", "DESTINATION", "ROUTE"]) {
      expect(screen.shows(title)).toBe(true);
    }
    expect(screen.shows("Hidden below")).toBe(false);
  }, 300_000);
});
