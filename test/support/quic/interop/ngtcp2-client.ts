// An independent client of the QUIC ingress (ngtcp2-client.cc), run with a key and a certificate.
//
// Requirements are those of ngtcp2-leader.ts.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseEndpoint } from "../../../../src/core/addresses/addresses.ts";
import type { QuicheCredentials } from "../../../../src/core/quic/quiche.ts";
import { closing } from "../../closing.ts";
import { until } from "../../network/udp-receiver.ts";
import { temporaryFolder } from "../../temporary-folder.ts";

export interface Ngtcp2ClientOptions {
  /** Path of the compiled program. */
  readonly program: string;
  /** "ip:port" */
  readonly address: string;
  readonly protocol: string;
  /** null: no certificate. */
  readonly credentials: QuicheCredentials | null;
  readonly serverName?: string;
  /** A command that runs the program, for example in a network namespace. */
  readonly command?: readonly string[];
}

export class Ngtcp2Client {
  isEstablished = false;
  /** How the connection ended, for example "app 1 unauthorized: …"; null: it is open. */
  end: string | null = null;
  /** Responses by stream id. */
  readonly responses = new Map<number, Buffer>();
  #nextRequest = 0;
  readonly #child: ChildProcessWithoutNullStreams;

  /** Begins the handshake. */
  static open(options: Ngtcp2ClientOptions): Ngtcp2Client {
    return closing(new Ngtcp2Client(options));
  }

  private constructor(options: Ngtcp2ClientOptions) {
    const { program, address, protocol, credentials, serverName = "astralane" } = options;
    const host = address.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
    const { port } = parseEndpoint(address);
    const files = credentials ? writtenFiles(credentials) : ["-", "-"];
    const words = [program, host, String(port), ...files, protocol, serverName];
    const [file = "", ...rest] = [...(options.command ?? []), ...words];
    this.#child = spawn(file, rest);
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#note(line));
    this.#child.stderr.pipe(process.stderr);
    this.#child.stdin.on("error", () => undefined);
  }

  established(): Promise<void> {
    return until(() => this.isEstablished, "an established connection");
  }

  async ended(): Promise<string> {
    await until(() => this.end !== null, "the end of the connection");
    return this.end ?? "";
  }

  /** Sends one complete unidirectional stream. */
  send(bytes: Uint8Array): void {
    this.#command("uni", bytes);
  }

  /** Sends one bidirectional stream and waits for the response. */
  async request(bytes: Uint8Array): Promise<Buffer> {
    const id = 4 * this.#nextRequest++;
    this.#command("bidi", bytes);
    await until(() => this.responses.has(id) || this.end !== null, `a response to stream ${id}`);
    const response = this.responses.get(id);
    if (!response) throw new Error(`expected a response, got the end: ${this.end}`);
    return response;
  }

  /** Starts a unidirectional stream without its end. */
  begin(bytes: Uint8Array): void {
    this.#command("begin", bytes);
  }

  /** Ends the oldest stream of `begin`. */
  finish(bytes: Uint8Array): void {
    this.#command("finish", bytes);
  }

  /** Starts a unidirectional stream and resets it. */
  reset(bytes: Uint8Array): void {
    this.#command("reset", bytes);
  }

  leave(code: number): void {
    this.#child.stdin.write(`close ${code}\n`);
  }

  /** Ends it without a packet to the server. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.stdin.end();
    await exited;
  }

  #command(name: string, bytes: Uint8Array): void {
    this.#child.stdin.write(`${name} ${Buffer.from(bytes).toString("hex")}\n`);
  }

  #note(line: string): void {
    const [what = "", value = ""] = line.split(/ (.*)/s);
    if (what === "established") this.isEstablished = true;
    else if (what === "end") this.end = value;
    else if (what === "response") {
      const [id, hex = ""] = value.split(" ");
      this.responses.set(Number(id), Buffer.from(hex, "hex"));
    }
  }
}

function writtenFiles({ keyPem, certificatePem }: QuicheCredentials): [string, string] {
  const folder = temporaryFolder();
  const files: [string, string] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  writeFileSync(files[0], keyPem);
  writeFileSync(files[1], certificatePem);
  return files;
}
