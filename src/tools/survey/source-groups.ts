// `shredway sources groups`: the multicast groups of an interface, and what each one delivers.
//
// An action of commands/sources.ts. It needs no configuration and ends by itself.

import { defaultGroupInterface, defaultGroupPort } from "../../core/configuration/relay-sources.ts";
import { type Arguments, exitCodes } from "../terminal/command.ts";
import { formatRate, table, toJson } from "../terminal/formatting.ts";
import { endOf, every, type Terminal } from "../terminal/terminal.ts";
import { GroupSurvey, type SurveyedGroup } from "./group-survey.ts";

export const surveySeconds = { default: 10, max: 600 } as const;

const refreshMs = 1000;

interface Result {
  readonly seconds: number;
  readonly groups: readonly SurveyedGroup[];
  readonly problem: string | null;
}

function contentOf({ problem, shreds, other }: SurveyedGroup): string {
  if (problem !== null) return `not joined: ${problem}`;
  if (shreds > 0) return other > 0 ? "shreds and other datagrams" : "shreds";
  return other > 0 ? "other datagrams, no shred" : "no datagram";
}

function lines({ seconds, groups }: Result): string[] {
  const columns = [
    { title: "GROUP" },
    { title: "SHREDS", right: true },
    { title: "OTHER", right: true },
    { title: "CONTENT" },
  ];
  const rows = groups.map((group) => [
    group.group,
    formatRate(group.shreds / seconds),
    formatRate(group.other / seconds),
    contentOf(group),
  ]);
  return table(columns, rows);
}

function json({ seconds, groups, problem }: Result, isFinal: boolean): string {
  return toJson({
    seconds,
    groups: groups.map((group) => ({
      ...group,
      shredsPerSecond: group.shreds / seconds,
      otherPerSecond: group.other / seconds,
    })),
    problem,
    ...(isFinal && { final: true }),
  });
}

/** Ends after --seconds or at Ctrl-C. Exit code 1: no group delivers shreds. */
export async function surveyGroups(args: Arguments, terminal: Terminal): Promise<number> {
  const name = args.text("interface") ?? defaultGroupInterface;
  const port = args.integer("port", { min: 1, max: 65_535 }) ?? defaultGroupPort;
  const seconds = args.positive("seconds", surveySeconds.max) ?? surveySeconds.default;
  const isJson = args.flag("json");
  const survey = GroupSurvey.open({
    interface: name,
    port,
    onNote: (text) => terminal.note(text),
  });
  try {
    const start = performance.now();
    const read = (): Result => ({
      seconds: Math.max(0.001, (performance.now() - start) / 1000),
      groups: survey.read(),
      problem: survey.problem,
    });
    await every(refreshMs, endOf(terminal.stopped, seconds), () => {
      if (isJson) terminal.line(json(read(), false));
      else terminal.progress(`receiving on ${name}, port ${port}: ${seconds} s`);
      return true;
    });
    terminal.clearProgress();
    const result = read();
    if (isJson) terminal.line(json(result, true));
    else if (result.groups.length > 0) for (const line of lines(result)) terminal.line(line);
    else terminal.note(`no groups: ${result.problem ?? `none has a route through ${name}`}`);
    return result.groups.some(({ shreds }) => shreds > 0) ? exitCodes.ok : exitCodes.failed;
  } finally {
    survey.close();
  }
}
