// The man page shredway(1) in roff (man macros), generated from the command table.
//
// write-man-page.ts calls it. Does no I/O. Groff and mandoc both show every text as it is written
// in the table.

import {
  actionTitle,
  allOptions,
  type Command,
  optionHelp,
  optionTitle,
  programOptions,
  programSummary,
  synopsisOf,
} from "../terminal/command.ts";

interface ManPageOptions {
  readonly version: string;
  /** YYYY-MM-DD. */
  readonly date: string;
}

type Row = readonly [title: string, text: string];

/** Width of a synopsis below a heading, on a terminal of 80 columns. */
const synopsisColumns = 72;

const exitStatus: readonly Row[] = [
  ["0", "The command succeeded."],
  ["1", "The command failed. The message on standard error states the reason."],
  [
    "2",
    "Wrong usage: an unknown command, action or option, a repeated option, or an invalid value. " +
      "The message states the received and the expected value.",
  ],
  ["3", "Only of audit: nothing differs, but the node could not answer for each registration."],
];

const environment: readonly Row[] = [
  ["SHREDWAY_URL", "URL of the gateway, for send without --url."],
  ["SHREDWAY_STREAMS_URL", "URL of the decoded streams, for stream without --url."],
  [
    "SHREDWAY_API_KEY",
    "API key for send and stream, without --api-key, --api-key-file and a key in the URL.",
  ],
  ["NO_COLOR", "If set and not empty, the output contains no colours."],
  ["TERM", "The value dumb disables colours and redrawing in place."],
  [
    "NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID",
    "Set by systemd: start reports its states, reloads and watchdog pings to this socket.",
  ],
  [
    "CREDENTIALS_DIRECTORY",
    `Set by systemd: the folder of the secrets that the configuration refers to as \${credential:NAME}.`,
  ],
  ["PGPASSWORD", "Password of the PostgreSQL server, if the URL in data.postgres contains none."],
  ["Any other variable", `The configuration can refer to it as \${env:NAME}.`],
];

const files: readonly Row[] = [
  ["./data/shredway.db", "The database, unless --data or the configuration names another place."],
  ["./data/sandbox.key", "The API key of the sandbox."],
  [
    "/etc/shredway/shredway.yaml",
    "The configuration of the systemd unit in examples/production. A command reads only the file that " +
      "--config names.",
  ],
];

const special: Readonly<Record<string, string>> = {
  "\\": "\\e",
  "-": "\\-",
  "'": "\\(aq",
  "`": "\\(ga",
  "^": "\\(ha",
  "~": "\\(ti",
  '"': "\\(dq",
};

/** Text that both formatters show unchanged, also at the beginning of a line. */
function escaped(text: string): string {
  const ascii = text
    .replaceAll(/[\\\-'`^~"]/g, (character) => special[character] ?? character)
    .replaceAll(/[^\n\u0020-\u007e]/gu, (character) => {
      const hex = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
      return `\\[u${hex}]`;
    });
  return ascii.replaceAll(/^[.]/gm, "\\&.");
}

function bold(text: string): string {
  return `\\fB${escaped(text)}\\fR`;
}

/** "--config FILE", with the value in italics. */
function title(text: string): string {
  return text.replaceAll(
    /(?<name>[^ ]+)(?: (?<value>[A-Z][^ ]*))?/g,
    (_all, name: string, value: string | undefined) =>
      value === undefined ? bold(name) : `${bold(name)} \\fI${escaped(value)}\\fR`,
  );
}

function list(rows: readonly (readonly [title: string, text: string])[]): string[] {
  return rows.flatMap(([name, text]) => [".TP", name, escaped(text)]);
}

/** Lines that are not filled. */
function verbatim(lines: readonly string[]): string[] {
  return [".PP", ".nf", ...lines.map(escaped), ".fi"];
}

/** Paragraphs end at an empty line. Indented lines are commands, which are not filled. */
function paragraphs(text: string): string[] {
  const lines = [".PP"];
  let isCommand = false;
  for (const line of text.trim().split("\n")) {
    if (line.startsWith("  ") !== isCommand) {
      isCommand = !isCommand;
      lines.push(isCommand ? ".nf" : ".fi");
    }
    lines.push(line === "" ? ".PP" : escaped(line));
  }
  return isCommand ? [...lines, ".fi"] : lines;
}

/** Indented below a heading of a command. */
function titled(heading: string, body: readonly string[]): string[] {
  return body.length === 0 ? [] : [".PP", `${heading}:`, ".RS", ...body, ".RE"];
}

function describeCommand(command: Command): string[] {
  const actions = Object.entries(command.actions ?? {});
  const options = Object.entries(allOptions(command));
  return [
    `.SS ${escaped(command.name)}`,
    `${escaped(command.summary.replace(/^./, (first) => first.toUpperCase()))}.`,
    ...verbatim(synopsisOf(command, synopsisColumns)),
    ...paragraphs(command.description),
    ...titled(
      "Actions",
      list(actions.map(([name, action]) => [title(actionTitle(name, action)), action.help])),
    ),
    ...titled(
      "Options",
      list(options.map(([name, option]) => [title(optionTitle(name, option)), optionHelp(option)])),
    ),
    ...titled("Examples", verbatim(command.examples)),
  ];
}

function described(rows: readonly Row[]): string[] {
  return list(rows.map(([name, text]) => [bold(name), text]));
}

export function manPage(commands: readonly Command[], { version, date }: ManPageOptions): string {
  const options = Object.entries(programOptions);
  return [
    '.\\" Written by src/tools/write-man-page.ts from the table of commands.',
    `.TH SHREDWAY 1 ${date} "Shredway ${escaped(version)}" "User Commands"`,
    ".SH NAME",
    "shredway \\- shred relay and transaction gateway for Solana",
    ".SH SYNOPSIS",
    "\\fBshredway\\fR \\fIcommand\\fR [\\fIoptions\\fR]",
    ".SH DESCRIPTION",
    escaped(programSummary),
    ".PP",
    escaped(
      "Data goes to standard output; logs, progress and errors go to standard error. Addresses are " +
        "IP:port, IPv6 as [2001:db8::1]:20000; host names are not resolved.",
    ),
    ...list(options.map(([name, option]) => [title(optionTitle(name, option)), option.help])),
    ".SH COMMANDS",
    ...commands.flatMap(describeCommand),
    ".SH EXIT STATUS",
    ...described(exitStatus),
    ".SH ENVIRONMENT",
    ...described(environment),
    ".SH FILES",
    ...described(files),
    ".SH SEE ALSO",
    ".BR systemctl (1),",
    ".BR sysctl (8)",
    ".PP",
    escaped("The folder docs of the installation contains the complete documentation."),
    "",
  ].join("\n");
}
