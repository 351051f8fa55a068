// The option --stream of `race`: NAME=[DIALECT:]URL, with the key in a file or in the URL.

import { quote } from "../../core/errors.ts";
import { splitName } from "../listen/feed-options.ts";
import { keyInFile } from "../send/target.ts";
import { type StreamDialect, streamDialects } from "../stream/stream-target.ts";
import { type Arguments, usageError } from "../terminal/command.ts";
import type { RaceStream } from "./race-streams.ts";

export const streamOptions = {
  stream: {
    value: "NAME=[DIALECT:]URL",
    repeated: true,
    help: `a decoded stream over gRPC (http or https); DIALECT: ${streamDialects.join(", ")} (default ${streamDialects[0]})`,
  },
  "stream-key": {
    value: "NAME=FILE",
    repeated: true,
    help: "file with the API key of a stream (default: ?api-key=KEY in its URL, or none)",
  },
} as const;

/** Throws ShredwayError "usage". */
export function readStreams(args: Arguments): RaceStream[] {
  const keys = new Map(
    args.texts("stream-key").map((text) => {
      const [name, file] = splitName("stream-key", text, "FILE");
      return [name, keyInFile(file)];
    }),
  );
  const streams = args.texts("stream").map((text) => {
    const [name, place] = splitName("stream", text, "[DIALECT:]URL");
    return { name, target: targetOf(name, place, keys.get(name)) };
  });
  const unknown = [...keys.keys()].find((name) => streams.every((one) => one.name !== name));
  if (unknown === undefined) return streams;
  throw usageError(`--stream-key ${unknown}: expected the name of a --stream`);
}

function targetOf(name: string, place: string, key: string | undefined): RaceStream["target"] {
  const [, word, text = ""] = /^(?:([a-z]+):)?(https?:\/\/.*)$/.exec(place) ?? [];
  const dialect = dialectOf(name, word ?? streamDialects[0]);
  if (!URL.canParse(text)) {
    throw usageError(
      `--stream ${name}: invalid value ${quote(place)}; expected NAME=[DIALECT:]http://host:port, or https with TLS`,
    );
  }
  const url = new URL(text);
  return {
    url: `${url.origin}${url.pathname}`,
    apiKey: key ?? url.searchParams.get("api-key"),
    certificateAuthorities: undefined,
    dialect,
    filter: { vote: undefined, include: [], exclude: [], required: [] },
    fromSlot: null,
  };
}

function dialectOf(name: string, text: string): StreamDialect {
  const dialect = streamDialects.find((one) => one === text);
  if (dialect) return dialect;
  throw usageError(
    `--stream ${name}: invalid dialect ${quote(text)}; expected one of ${streamDialects.join(", ")}`,
  );
}
