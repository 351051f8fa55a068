import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { type Command, helpOf, parseArguments } from "../../../src/tools/terminal/command.ts";

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
  it("gives options and positionals by type", () => {
    const args = parsed("a.pcap", "b.lpb", "--to", "127.0.0.1:9", "--rate=5000", "-j");
    expect(args.positionals).toEqual(["a.pcap", "b.lpb"]);
    expect(args.endpoint("to")).toBe("127.0.0.1:9");
    expect(args.integer("rate", { min: 1, max: 10_000 })).toBe(5000);
    expect(args.flag("json")).toBe(true);
    expect(args.text("speed")).toBeUndefined();
  });

  it("knows help in both forms", () => {
    expect(parseArguments(command, ["--help"])).toBe("help");
    expect(parseArguments(command, ["-h"])).toBe("help");
    const help = helpOf(command);
    for (const text of ["shredway probe FILE…", "--to ADDRESS", "-j, --json", "shredway probe a"])
      expect(help).toContain(text);
  });

  it("names an unknown option and those that exist", () => {
    expect(refusal(() => parsed("--bogus", "1"))).toBe(
      "probe: unknown option --bogus; expected one of --to, --rate, --speed, --json, --help",
    );
    expect(refusal(() => parsed("-x"))).toContain("probe: unknown option -x");
    expect(refusal(() => parsed("--to"))).toContain("--to");
  });

  it.each([
    ["--rate", "0", '--rate: expected a whole number from 1 to 9, got "0"'],
    ["--rate", "1.5", '--rate: expected a whole number from 1 to 9, got "1.5"'],
    ["--rate", "1e1", '--rate: expected a whole number from 1 to 9, got "1e1"'],
    ["--rate", "", '--rate: expected a whole number from 1 to 9, got ""'],
  ])("%s %s is refused with what was expected and what came", (name, value, message) => {
    expect(refusal(() => parsed(name, value).integer("rate", { min: 1, max: 9 }))).toBe(message);
  });

  it("refuses shares, speeds and addresses out of range", () => {
    for (const value of ["-0.1", "1.1", "x", "NaN"]) {
      expect(refusal(() => parsed(`--rate=${value}`).share("rate"))).toContain("from 0 to 1");
    }
    expect(parsed("--rate", ".5").share("rate")).toBe(0.5);
    for (const value of ["0", "-1", "1e400", "Infinity"]) {
      expect(refusal(() => parsed(`--speed=${value}`).positive("speed", 10))).toContain("above 0");
    }
    expect(refusal(() => parsed("--to", "localhost:9").endpoint("to"))).toContain("--to: expected");
    expect(refusal(() => parsed("--to", "127.0.0.1:0").endpoint("to"))).toContain(
      "port 1 to 65535",
    );
  });

  it("takes a negative number for a value, whose check says the range", () => {
    expect(refusal(() => parsed("--rate", "-1").integer("rate", { min: 1, max: 9 }))).toBe(
      '--rate: expected a whole number from 1 to 9, got "-1"',
    );
    expect(parsed("--", "--rate", "-1").positionals).toEqual(["--rate", "-1"]);
    expect(refusal(() => parsed("--json", "-1"))).toContain("no option -1");
  });

  it("refuses the same option twice", () => {
    expect(refusal(() => parsed("--rate", "1", "--rate=2"))).toBe(
      "--rate is given more than once; expected once",
    );
    expect(refusal(() => parsed("-j", "--json"))).toBe(
      "--json is given more than once; expected once",
    );
  });

  it("refuses two options that exclude each other, and a missing one", () => {
    const both = parsed("--rate", "1", "--speed", "1");
    expect(refusal(() => both.exclusive("rate", "speed"))).toBe(
      "expected at most one of --rate, --speed, got --rate and --speed",
    );
    expect(refusal(() => parsed().required("to", "127.0.0.1:9"))).toBe(
      "expected --to, for example --to 127.0.0.1:9, got none",
    );
  });

  it("refuses positionals where none are taken", () => {
    const { positional: _none, ...plain } = command;
    expect(refusal(() => parseArguments(plain, ["extra"]))).toBe(
      'probe: unexpected argument "extra"; expected only options',
    );
  });
});
