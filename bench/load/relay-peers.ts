// Other programs that fan out UDP, which the section "peers" finds on this machine, and their commands.
//
// The native scenario (bench/native/peers_scenario.cc) starts them and explains the places {port},
// {list:C} and {joined:C}. Programs that remove no duplicates get one copy of each shred.

import { accessSync, constants } from "node:fs";
import { findProgram } from "./native-program.ts";

export interface RelayPeer {
  readonly name: string;
  readonly command: readonly string[];
  readonly copies: 1 | 3;
  /** Absent: any number. */
  readonly destinationsMax?: number;
}

interface KnownPeer extends Omit<RelayPeer, "command"> {
  /** Its path is in this variable; NAME_ARGUMENTS replaces the words after it. */
  readonly variable?: string;
  /** Otherwise the name of a program on the PATH. */
  readonly program?: string;
  /** Absent: they must be given. */
  readonly words?: readonly string[];
}

const known: readonly KnownPeer[] = [
  {
    name: "jito",
    variable: "SHREDWAY_PEER_JITO",
    words: "forward-only --num-threads 1 --src-bind-port {port} --dest-ip-ports {joined:,}".split(
      " ",
    ),
    copies: 3,
  },
  { name: "doublezero", variable: "SHREDWAY_PEER_DOUBLEZERO", copies: 3 },
  {
    name: "samplicator",
    variable: "SHREDWAY_PEER_SAMPLICATOR",
    program: "samplicator",
    words: ["-p", "{port}", "-b", String(32 << 20), "{list:/}"],
    copies: 1,
  },
  {
    name: "gstreamer",
    program: "gst-launch-1.0",
    words:
      "-q udpsrc address=127.0.0.1 port={port} buffer-size=33554432 ! multiudpsink sync=false async=false clients={joined:,}".split(
        " ",
      ),
    copies: 1,
  },
  {
    name: "socat",
    program: "socat",
    words: ["-u", "UDP4-RECV:{port},bind=127.0.0.1,rcvbuf=33554432", "UDP4-SENDTO:{joined:,}"],
    copies: 1,
    destinationsMax: 1,
  },
];

function pathOf({ variable, program }: KnownPeer): string | undefined {
  const given = variable === undefined ? undefined : process.env[variable];
  if (!given) return program === undefined ? undefined : findProgram(program);
  try {
    accessSync(given, constants.X_OK);
    return given;
  } catch {
    throw new Error(`${variable}: expected the path of an executable file, got "${given}"`);
  }
}

/** The programs on this machine, and one sentence for each that is missing. */
export function findRelayPeers(): { peers: RelayPeer[]; missing: string[] } {
  const peers: RelayPeer[] = [];
  const missing: string[] = [];
  for (const peer of known) {
    const { name, variable, program, copies, destinationsMax } = peer;
    const path = pathOf(peer);
    const given = variable === undefined ? undefined : process.env[`${variable}_ARGUMENTS`];
    const words = given ? given.split(" ") : peer.words;
    if (path === undefined) {
      missing.push(`${name}: not found (${variable ?? program})`);
    } else if (words === undefined) {
      missing.push(`${name}: expected its arguments in ${variable}_ARGUMENTS`);
    } else {
      peers.push({
        name,
        command: [path, ...words],
        copies,
        ...(destinationsMax !== undefined && { destinationsMax }),
      });
    }
  }
  return { peers, missing };
}

/** Options of the native program. */
export function peerWords(peers: readonly RelayPeer[]): string[] {
  return peers.flatMap(({ name, command, copies, destinationsMax }) => [
    "--peer",
    name,
    "--peer-copies",
    String(copies),
    ...(destinationsMax === undefined ? [] : ["--peer-destinations", String(destinationsMax)]),
    ...command.flatMap((word) => ["--peer-word", word]),
  ]);
}
