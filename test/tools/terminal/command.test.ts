import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import {
  type Command,
  helpOf,
  helpWidth,
  parseArguments,
} from "../../../src/tools/terminal/command.ts";

const command: Command = {
  name: "probe",
  summary: "a command for this test",
  usage: ["probe FILE… [options]"],
  description: "Text.",
  options: {
    to: { value: "ADDRESS", help: "where to" },
    rate: { value: "N", help: "how fast" },
    speed: { value: "X", help: "how fast, too" },
    json: { short: "j", help: "as JSON" },
  },
  positional: "FILE",
  examples: ["shredway probe a"],
  run: async () => 0,
};

function parsed(...given: string[]) {
  const args = parseArguments(command, given);
  if (args === "help") throw new Error("help was not asked for");
  return args;
}

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof ShredwayError && error.reason === "usage") return error.message;
    throw error;
  }
  throw new Error("expected a refusal, got none");
}

describe("parseArguments", () => {
  it("returns options and positionals by type", () => {
    const args = parsed("a.pcap", "b.lpb", "--to", "127.0.0.1:9", "--rate=5000", "-j");
    expect(args.positionals).toEqual(["a.pcap", "b.lpb"]);
    expect(args.endpoint("to")).toBe("127.0.0.1:9");
    expect(args.integer("rate", { min: 1, max: 10_000 })).toBe(5000);
    expect(args.flag("json")).toBe(true);
    expect(args.text("speed")).toBeUndefined();
  });

  it("accepts both forms of the help option", () => {
    expect(parseArguments(command, ["--help"])).toBe("help");
    expect(parseArguments(command, ["-h"])).toBe("help");
    const help = helpOf(command);
    for (const text of ["shredway probe FILE…", "--to ADDRESS", "-j, --json", "shredway probe a"])
      expect(help).toContain(text);
  });

  it("wraps a long synopsis between its words, and lists the actions", () => {
    const lines = helpOf({
      ...command,
      usage: [`probe make --to ADDRESS [--rate N | --speed X] [${"--json".padEnd(60, "x")}]`],
      actions: { make: { argument: "FILE", help: "make it" } },
      options: { to: { value: "ADDRESS", actions: ["make"], help: "where to" } },
    }).split("\n");
    expect(lines.slice(0, 2)).toEqual([
      "Usage: shredway probe make --to ADDRESS [--rate N | --speed X]",
      `                      [${"--json".padEnd(60, "x")}]`,
    ]);
    expect(lines).toContain("  make FILE  make it");
    expect(lines).toContain("  --to ADDRESS  make: where to");
  });

  it("wraps descriptions and options to the width of the terminal, but no commands", () => {
    const words = Array.from({ length: 40 }, (_, i) => `word-${i}`).join(" ");
    const example = `shredway probe ${words}`;
    const long: Command = {
      ...command,
      description: `first ${words}\n\nsecond\nline:\n  ${example}\nlast`,
      options: { to: { value: "ADDRESS", help: words } },
      examples: [example],
    };
    for (const [columns, width] of [
      [20, 60],
      [80, 80],
      [200, 100],
      [undefined, 100],
    ] as const) {
      const help = helpOf(long, helpWidth(columns));
      const lines = help.split("\n").filter((line) => line !== `  ${example}`);
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(width);
      expect(help.split(`\n  ${example}\n`)).toHaveLength(3);
      expect(help.replaceAll(/\s+/g, " ")).toContain(`first ${words} second line: ${example} last`);
      expect(help.replaceAll(/\s+/g, " ")).toContain(`--to ADDRESS ${words} `);
      expect(lines).toContain("second line:");
    }
  });

  it("reports an unknown option with the permitted ones", () => {
    expect(refusal(() => parsed("--bogus", "1"))).toBe(
      "unknown option --bogus; expected one of --to, --rate, --speed, --json, --help",
    );
    expect(refusal(() => parsed("-x"))).toContain("unknown option -x");
    expect(refusal(() => parsed("--to"))).toContain("--to");
  });

  it.each([
    ["--rate", "0", '--rate: invalid value "0"; expected an integer from 1 to 9'],
    ["--rate", "1.5", '--rate: invalid value "1.5"; expected an integer from 1 to 9'],
    ["--rate", "1e1", '--rate: invalid value "1e1"; expected an integer from 1 to 9'],
    ["--rate", "", '--rate: invalid value ""; expected an integer from 1 to 9'],
  ])("%s %s is refused with the received and the expected value", (name, value, message) => {
    expect(refusal(() => parsed(name, value).integer("rate", { min: 1, max: 9 }))).toBe(message);
  });

  it("rejects shares, speeds and addresses out of range", () => {
    for (const value of ["-0.1", "1.1", "x", "NaN"]) {
      expect(refusal(() => parsed(`--rate=${value}`).share("rate"))).toContain("from 0 to 1");
    }
    expect(parsed("--rate", ".5").share("rate")).toBe(0.5);
    for (const value of ["0", "-1", "1e400", "Infinity"]) {
      expect(refusal(() => parsed(`--speed=${value}`).positive("speed", 10))).toContain("above 0");
    }
    expect(refusal(() => parsed("--to", "localhost:9").endpoint("to"))).toContain(
      '--to: invalid value "localhost:9"; expected',
    );
    expect(refusal(() => parsed("--to", "127.0.0.1:0").endpoint("to"))).toContain(
      "port 1 to 65535",
    );
  });

  it("reports the permitted range for a negative value", () => {
    expect(refusal(() => parsed("--rate", "-1").integer("rate", { min: 1, max: 9 }))).toBe(
      '--rate: invalid value "-1"; expected an integer from 1 to 9',
    );
    expect(parsed("--", "--rate", "-1").positionals).toEqual(["--rate", "-1"]);
    expect(refusal(() => parsed("--json", "-1"))).toContain("unknown option -1");
  });

  it("refuses a repeated option", () => {
    expect(refusal(() => parsed("--rate", "1", "--rate=2"))).toBe(
      "--rate is given more than once; expected once",
    );
    expect(refusal(() => parsed("-j", "--json"))).toBe(
      "--json is given more than once; expected once",
    );
  });

  it("refuses mutually exclusive options and a missing one", () => {
    const both = parsed("--rate", "1", "--speed", "1");
    expect(refusal(() => both.exclusive("rate", "speed"))).toBe(
      "--rate and --speed exclude each other; expected at most one of --rate, --speed",
    );
    expect(refusal(() => parsed().required("to", "127.0.0.1:9"))).toBe(
      "missing option --to; for example --to 127.0.0.1:9",
    );
  });

  it("refuses unexpected positionals", () => {
    const { positional: _none, ...plain } = command;
    expect(refusal(() => parseArguments(plain, ["extra"]))).toBe(
      'unexpected argument "extra"; expected only options',
    );
  });
});
