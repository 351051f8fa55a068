// TLS listeners: versions, requests, WebSockets, a renewed certificate, and clients that misbehave.

import { X509Certificate } from "node:crypto";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { get, type RequestOptions } from "node:https";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { HttpServer } from "../../../src/gateway/http/server.ts";
import { TlsCertificate } from "../../../src/gateway/http/tls-certificate.ts";
import type { HttpServerOptions } from "../../../src/gateway/http/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import {
  type CertificateFiles,
  hasOpenssl,
  makeCertificate,
} from "../../support/network/test-certificate.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { logged, onEveryEngine, serve } from "./clients.ts";

interface Served {
  readonly server: HttpServer;
  readonly port: number;
  readonly files: CertificateFiles;
  readonly clock: ManualClock;
  readonly lines: readonly Record<string, unknown>[];
}

const handle: HttpServerOptions["handle"] = ({ isTls, body, remoteAddress }) => ({
  status: 200,
  body: `${isTls ? "TLS" : "plain"} ${remoteAddress} ${Buffer.from(body).toString()}`,
});

async function serveTls(options: Partial<HttpServerOptions> = {}): Promise<Served> {
  const folder = temporaryFolder();
  const files = makeCertificate(folder, "server");
  const clock = new ManualClock();
  const { log, lines } = logged();
  const certificate = closing(new TlsCertificate(files, { clock, log }));
  const tls = { listen: ["127.0.0.1:0"], certificate };
  const server = await serve({ handle, tls, ...options }, log);
  const port = Number(server.tlsAddresses[0]?.split(":").at(-1));
  return { server, port, files, clock, lines };
}

/** A TLS connection that trusts exactly the certificate of the server. */
function open({ port, files }: Served, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const ca = readFileSync(files.certificate);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, ca, ...options }, () => {
      closing({ close: () => void socket.destroy() });
      resolve(socket);
    });
    socket.once("error", reject);
  });
}

function textOf({ port, files }: Served, options: RequestOptions = {}): Promise<string> {
  const ca = readFileSync(files.certificate);
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, ca, agent: false, ...options }, (response) => {
      response.setEncoding("utf8");
      let text = "";
      response.on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => resolve(text));
    }).once("error", reject);
  });
}

function renew({ files }: Served): void {
  const renewed = makeCertificate(temporaryFolder(), "renewed");
  copyFileSync(renewed.certificate, files.certificate);
  copyFileSync(renewed.key, files.key);
}

onEveryEngine((engine) => {
  describe.skipIf(!hasOpenssl)("a TLS listener (needs openssl)", () => {
    it.each(["TLSv1.2", "TLSv1.3"] as const)("answers requests with %s", async (version) => {
      const served = await serveTls();
      const versions = { minVersion: version, maxVersion: version };
      expect(await textOf(served, versions)).toBe("TLS 127.0.0.1 ");
      const socket = await open(served, { ...versions, ALPNProtocols: ["h2", "http/1.1"] });
      expect(socket.getProtocol()).toBe(version);
      expect(["http/1.1", false]).toContain(socket.alpnProtocol);
    });

    it("refuses TLS 1.1", async () => {
      const served = await serveTls();
      const old: ConnectionOptions = {
        minVersion: "TLSv1.1",
        maxVersion: "TLSv1.1",
        ciphers: "ALL:@SECLEVEL=0",
      };
      await expect(open(served, old)).rejects.toThrow(/protocol version|EPROTO/i);
    });

    it("leaves the plain listener without TLS", async () => {
      const { server } = await serveTls();
      const answer = await fetch(`http://${server.addresses[0]}/`, { method: "POST", body: "a" });
      expect(await answer.text()).toBe("plain 127.0.0.1 a");
    });

    it("answers a body of a megabyte in many records", async () => {
      const large = "x".repeat(1_000_000);
      const served = await serveTls({ handle: () => ({ status: 200, body: large }) });
      expect(await textOf(served)).toBe(large);
    });

    it("serves WebSockets, and marks their requests", async () => {
      const marks: boolean[] = [];
      const served = await serveTls({
        webSockets: {
          "/ws": {
            messageBytesMax: 1000,
            messageLimits: {
              messagesPerSecond: 100,
              messagesBurst: 100,
              bytesPerSecond: 1_000_000,
            },
            backpressureBytesMax: 1_000_000,
            idleSeconds: 60,
            open: (_, head) => void marks.push(head.isTls),
            message: (peer, text) => void peer.send(`got ${text}`),
            closed: () => undefined,
          },
        },
      });
      const ca = readFileSync(served.files.certificate);
      const socket = new WebSocket(`wss://127.0.0.1:${served.port}/ws`, { ca });
      closing({ close: () => socket.terminate() });
      const answer = new Promise<string>((resolve, reject) => {
        socket.once("message", (bytes: Buffer) => resolve(bytes.toString()));
        socket.once("error", reject);
        socket.once("open", () => socket.send("hello"));
      });
      expect(await answer).toBe("got hello");
      expect(marks).toEqual([true]);
    });

    it("uses a renewed certificate for new connections, and keeps open ones", async () => {
      const served = await serveTls();
      const before = await open(served);
      const serialOf = (socket: TLSSocket) => socket.getPeerCertificate().serialNumber;
      renew(served);
      await served.clock.advance(2000);
      const after = await open(served);
      expect(serialOf(after)).not.toBe(serialOf(before));
      expect(served.lines.map(({ msg }) => msg)).toEqual([
        "http: a new TLS certificate is in force",
      ]);
      before.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      const bytes = await new Promise<Buffer>((resolve) => before.once("data", resolve));
      expect(bytes.toString()).toMatch(/^HTTP\/1.1 200 OK/);
      expect(await textOf(served)).toBe("TLS 127.0.0.1 ");
    });

    it("keeps the certificate while the files do not belong together, and logs this once", async () => {
      const served = await serveTls();
      const { files, clock, lines } = served;
      const certificate = readFileSync(files.certificate);
      const renewed = makeCertificate(temporaryFolder(), "renewed");
      copyFileSync(renewed.key, files.key);
      for (let i = 0; i < 3; i++) await clock.advance(2000);
      expect(await textOf(served, { ca: certificate })).toBe("TLS 127.0.0.1 ");
      expect(lines.map(({ msg }) => msg)).toEqual([
        expect.stringContaining("this is not the key of the certificate in"),
      ]);
      copyFileSync(renewed.certificate, files.certificate);
      await clock.advance(2000);
      expect(await textOf(served)).toBe("TLS 127.0.0.1 ");
    });

    it("survives clients without TLS and aborted handshakes, and counts them", async () => {
      const served = await serveTls();
      const { server, port } = served;
      const hostile = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01",
        "\0".repeat(9),
      ];
      const sockets = hostile.map((text) => {
        const socket = connectTcp({ host: "127.0.0.1", port }, () => socket.write(text));
        return socket.on("error", () => undefined);
      });
      await turnsUntil(() => server.connections > 0);
      expect(await textOf(served)).toBe("TLS 127.0.0.1 ");
      for (const socket of sockets) socket.destroy();
      await turnsUntil(() => server.connections === 0);
    });

    it("holds at most connectionsMax connections", async () => {
      const served = await serveTls({ connectionsMax: 1 });
      const first = await open(served);
      if (engine === "uws") {
        await expect(open(served)).rejects.toThrow(/disconnected|ECONNRESET/);
        first.destroy();
      } else {
        const ended = new Promise((resolve) => first.once("close", resolve));
        const second = await open(served);
        await ended;
        second.destroy();
      }
      await turnsUntil(() => served.server.connections === 0);
      expect(await textOf(served)).toBe("TLS 127.0.0.1 ");
    });

    it("ends with the server", async () => {
      const served = await serveTls();
      const socket = await open(served);
      const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.on("error", () => undefined).resume();
      served.server.close();
      await ended;
      await expect(open(served)).rejects.toThrow(/ECONNREFUSED/);
    });
  });
});

describe.skipIf(!hasOpenssl)("an expired certificate (needs openssl)", () => {
  it("is a problem from its end until it is renewed, and is logged once", async () => {
    const files = makeCertificate(temporaryFolder(), "old");
    const endMs = Date.parse(new X509Certificate(readFileSync(files.certificate)).validTo);
    const clock = new ManualClock(BigInt(endMs - 1000) * 1_000_000n);
    const { log, lines } = logged();
    const certificate = closing(new TlsCertificate(files, { clock, log, section: "streams" }));
    expect(certificate.problem).toBeNull();

    const expected =
      `streams: the TLS certificate ${files.certificate} expired at ${new Date(endMs).toISOString()}, ` +
      "so clients refuse the connection; renew it and replace both files";
    for (let i = 0; i < 3; i++) await clock.advance(2000);
    expect(certificate.problem).toBe(expected);
    expect(lines).toEqual([expect.objectContaining({ level: "error", msg: expected })]);
    const atStart = logged();
    closing(new TlsCertificate(files, { clock, log: atStart.log, section: "streams" }));
    expect(atStart.lines.map(({ msg }) => msg)).toEqual([expected]);

    writeFileSync(files.certificate, "broken");
    await clock.advance(2000);
    expect(certificate.problem).toMatch(
      /^streams: the new TLS certificate cannot be used; .*; streams: the TLS/,
    );
    const renewed = makeCertificate(temporaryFolder(), "new", { days: 30 });
    copyFileSync(renewed.key, files.key);
    copyFileSync(renewed.certificate, files.certificate);
    await clock.advance(2000);
    expect(certificate.problem).toBeNull();
  });
});

describe.skipIf(!hasOpenssl)("unusable files (needs openssl)", () => {
  it("are refused with the file and what is wrong with it", () => {
    const folder = temporaryFolder();
    const { certificate, key } = makeCertificate(folder, "a");
    const other = makeCertificate(folder, "b");
    const text = join(folder, "text.pem");
    writeFileSync(text, "no certificate\n");
    const openWith = (files: { certificate: string; key: string }) => () =>
      closing(new TlsCertificate(files, { clock: new ManualClock() }));
    expect(openWith({ certificate: join(folder, "none.pem"), key })).toThrow(
      /none\.pem: cannot be read/,
    );
    expect(openWith({ certificate: text, key })).toThrow(
      /text\.pem: expected a certificate in PEM/,
    );
    expect(openWith({ certificate, key: text })).toThrow(
      /text\.pem: expected a private key in PEM/,
    );
    expect(openWith({ certificate, key: other.key })).toThrow(
      `${other.key}: this is not the key of the certificate in ${certificate}`,
    );
  });
});
