// Rules about declarations: lengths of C++ functions, banned names, unused exports. Each list of
// exceptions only shrinks: an entry that is no longer needed fails.

import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  cppFunctions,
  declaredNames,
  exportedNames,
  importClauses,
} from "./support/source/source-declarations.ts";
import { type SourceFile, sourceFiles } from "./support/source/source-tree.ts";

/** The limit of .oxlintrc.json for TypeScript; neither blank lines nor comments count. */
const functionLinesMax = 70;

/** Longer C++ functions, with their present lengths. */
const longFunctions: Readonly<Record<string, number>> = {};

/** The present name of a thing, by a name that the project no longer uses. */
const bannedNames: Readonly<Record<string, string>> = {
  Admission: "TransactionAdmission or another name that says what is admitted",
  Arrival: "ShredArrival",
  Attempts: "AuthFailureLimiter",
  CountingOrder: "TipSequencer",
  Course: "RaceSession",
  DestinationTable: "DestinationLists or DestinationIndex",
  Face: "EndpointGroup",
  Filling: "DatabaseLoader",
  Gate: "FaultInjector",
  GraceLine: "GracePeriodQueue",
  HttpLane: "PartnerConnection",
  HttpPort: "PartnerEndpoint",
  LandingBell: "LandingNotifier",
  LeavingQueue: "TipExpiryQueue",
  Leg: "RouteAttempt",
  Making: "NonceAccountCreation",
  OrphanWatch: "SubmissionFailover",
  Parcel: "OutboundTransaction",
  Problems: "RecentWarnings",
  RegistrarFace: "Registrar",
  RegistrationSeat: "PendingRegistrations",
  Room: "ConcurrencyLimit",
  Settlements: "RegistrationResults",
  Sight: "ShredArrival or LandingObservation",
  Sighting: "ShredArrival or LandingObservation",
  Sights: "LandingObservation",
  Tally: "counts of what it counts, as RouteCounts",
  TierSeat: "TierLeadership",
  TipFloorFace: "TipFloorHandler",
  TipKeeper: "TipWriter",
  Tracked: "TrackedTransaction",
  TrackerFace: "TrackerHandler",
  Tracking: "StatusRecorder",
  View: "AccountTransaction or a name that says what is shown",
  anticipated: "recovered_sent",
  covers: "tier_mask",
  hand_over: "feed_deshredder",
  house_keeping: "housekeeping",
  keepNow: "persistNow",
  makeFace: "createGateway",
  pass_on: "queue_for_send",
  remember: "record",
  ring: "notify",
  set_bell: "set_notifier",
  widened: "new_tier",
};

/** Ends of type names that carry no meaning. */
const bannedEnd =
  /(?:Parts|Desk|Room|Seat|Face|Book|Keeper|Kept|Bell|Parcel|Exchange|Tally|Sights?)$/;
const endRemedy = "say what it is: …Options, …Dependencies, …Context, …Counts";

/** Names of those two lists that still exist. */
const remainingNames: readonly string[] = ["Arrival"];

/** Programs outside of this project import them. */
const publicInterfaces: readonly string[] = [
  "src/relay/index.ts",
  "src/client/index.ts",
  "src/client/quic/index.ts",
];

function longFunctionsOf({ path, text }: SourceFile): string[] {
  return cppFunctions(text)
    .filter(({ lines }) => lines > functionLinesMax)
    .filter(({ name, lines }) => lines > (longFunctions[`${path} ${name}`] ?? 0))
    .map(({ name, lines }) => `${path}: ${name} has ${lines} lines, at most ${functionLinesMax}`);
}

function remedyFor(name: string): string | null {
  if (Object.hasOwn(bannedNames, name)) return bannedNames[name] ?? null;
  return /^[A-Z]/.test(name) && bannedEnd.test(name) ? endRemedy : null;
}

/** The names that a file declares, without the class in front: "remember" for "A::remember". */
function namesOf({ path, text }: SourceFile): string[] {
  const functions = /\.(cc|h)$/.test(path)
    ? cppFunctions(text).map(({ name }) => name.split("::").at(-1) ?? "")
    : [];
  return [...new Set([...declaredNames(text), ...functions])];
}

function bannedNamesOf(file: SourceFile): string[] {
  return namesOf(file).flatMap((name) => {
    const remedy = remainingNames.includes(name) ? null : remedyFor(name);
    return remedy === null ? [] : [`${file.path}: ${name}; write ${remedy}`];
  });
}

/**
 * Types in declarations of other exports: the compiler cannot write `.d.ts` files without them (TS4023),
 * although no file imports them.
 */
const declarationTypes: readonly string[] = ["OpenMethod", "UriParameter"];

/** Exports of `files` that no other file imports; `importers` are files that only import. */
function unusedExports(files: readonly SourceFile[], importers: readonly SourceFile[]): string[] {
  /** Names by file; null: another file imports all of them. */
  const used = new Map<string, Set<string> | null>();
  for (const { path, text } of [...files, ...importers]) {
    for (const { from, names } of importClauses(text)) {
      const target = join(dirname(path), from);
      const before = used.get(target);
      const isComplete = names === null || before === null;
      used.set(target, isComplete ? null : new Set([...(before ?? []), ...names]));
    }
  }
  return files
    .filter(({ path }) => !publicInterfaces.includes(path) && used.get(path) !== null)
    .flatMap(({ path, text }) =>
      exportedNames(text)
        .filter((name) => !used.get(path)?.has(name) && !declarationTypes.includes(name))
        .map((name) => `${path}: no other file imports ${name}`),
    );
}

const typeScript = sourceFiles("src", [".ts", ".tsx"]);
const tests = sourceFiles("test", [".ts"]);
const benchmarks = sourceFiles("bench", [".ts", ".mjs"]);
const examples = sourceFiles("examples", [".ts", ".mjs"]);
const native = sourceFiles("native", [".cc", ".h"]);
const nativeBenchmarks = sourceFiles("bench/native", [".cc", ".h"]);
const everything = [...typeScript, ...tests, ...benchmarks, ...native, ...nativeBenchmarks];

const file = (path: string, text: string): SourceFile => ({ path, text });

describe("C++ functions", () => {
  it("have at most 70 lines", () => {
    expect(native.flatMap(({ text }) => cppFunctions(text)).length).toBeGreaterThan(1000);
    expect([...native, ...nativeBenchmarks].flatMap(longFunctionsOf)).toEqual([]);
    const all = [...native, ...nativeBenchmarks].flatMap(({ path, text }) =>
      cppFunctions(text)
        .filter(({ lines }) => lines > functionLinesMax)
        .map(({ name }) => `${path} ${name}`),
    );
    expect(Object.keys(longFunctions).filter((name) => !all.includes(name))).toEqual([]);
  });

  it("are found with their lengths", () => {
    const text = `
#define CHECK(x) \\
  do { x; } while (false)
namespace shredway {
/* Comments { and
   their lines do not count. */
struct Table {
  explicit Table(int size)
      : size_{size}, next_(0) {
    // Neither do blank ones.

    static const char* text = "}{";
    use(text, '}');
  }
  int size() const { return size_; }
  int size_{0};
};
template <typename T>
T Table::next(T* before) noexcept {
  auto step = [&](int i) {
    return i + 1'000;
  };
  return step(*before);
}
int declared(int a);
bool operator==(const Table& a, const Table& b) {
  return true;
}
}  // namespace shredway
`;
    expect(cppFunctions(text)).toEqual([
      { name: "Table", lines: 5 },
      { name: "size", lines: 1 },
      { name: "Table::next", lines: 7 },
      { name: "operator==", lines: 3 },
    ]);
  });

  it("are refused when they are longer", () => {
    const body = (lines: number) => `void run() {\n${"  step();\n".repeat(lines - 2)}}\n`;
    expect(longFunctionsOf(file("native/a.cc", body(70)))).toEqual([]);
    expect(longFunctionsOf(file("native/a.cc", body(71)))).toEqual([
      "native/a.cc: run has 71 lines, at most 70",
    ]);
  });
});

describe("names", () => {
  it("are those of the vocabulary", () => {
    expect(everything.flatMap(namesOf).length).toBeGreaterThan(3000);
    expect(everything.flatMap(bannedNamesOf)).toEqual([]);
    const declared = new Set(everything.flatMap(namesOf));
    expect(remainingNames.filter((name) => !declared.has(name))).toEqual([]);
  });

  it("are refused when the vocabulary has another", () => {
    expect(bannedNamesOf(file("src/a.ts", "export class TipKeeper {}"))).toEqual([
      "src/a.ts: TipKeeper; write TipWriter",
    ]);
    expect(bannedNamesOf(file("src/a.ts", "interface NovelDesk {\n}"))).toEqual([
      `src/a.ts: NovelDesk; write ${endRemedy}`,
    ]);
    expect(bannedNamesOf(file("native/a.cc", "void Recent::anticipated(int a) {}")).length).toBe(1);
    expect(bannedNamesOf(file("native/a.h", "enum class Gate : int { open };")).length).toBe(1);
    expect(bannedNamesOf(file("src/a.ts", "// class TipKeeper\nfunction string() {}"))).toEqual([]);
  });
});

describe("exports", () => {
  it("are imported by another file", () => {
    const importers = [...tests, ...benchmarks, ...examples];
    expect(typeScript.flatMap(({ text }) => exportedNames(text)).length).toBeGreaterThan(1000);
    expect(unusedExports(typeScript, importers)).toEqual([]);
  });

  it("are refused when no file imports them", () => {
    const exporter = file(
      "src/a.ts",
      "export const one = 1;\nexport interface Two {}\nexport { x as three };\nexport const { four } = x;",
    );
    const unused = (text: string) =>
      unusedExports([exporter], [file("test/a.test.ts", text)]).map((each) =>
        each.split(" ").at(-1),
      );
    expect(unused("")).toEqual(["one", "Two", "three", "four"]);
    expect(unused('import { one as first, type Two } from "../src/a.ts";')).toEqual([
      "three",
      "four",
    ]);
    expect(unused('export type { Two, three, four } from "../src/a.ts";')).toEqual(["one"]);
    expect(unused('import * as a from "../src/a.ts";')).toEqual([]);
    expect(unused('const { one } = await import("../src/a.ts");')).toEqual([]);
    expect(unused('// import { one } from "../src/a.ts";').length).toBe(4);
  });
});
