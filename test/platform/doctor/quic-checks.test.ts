// The doctor's checks of the QUIC ingress: buffers, packet filter, certificate.

import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { measures } from "../../../src/platform/doctor/measures.ts";
import { nftRemedy } from "../../../src/platform/doctor/nft-rules.ts";
import { checkQuic } from "../../../src/platform/doctor/quic-checks.ts";
import { type QuicFacts, readQuicFacts } from "../../../src/platform/doctor/quic-facts.ts";

const wantedBytes = 8 * 1024 * 1024;
const facts: QuicFacts = {
  wantedBytes,
  limits: { receiveBytes: 67_108_864, sendBytes: wantedBytes },
  granted: { receiveBytes: wantedBytes, sendBytes: wantedBytes },
  ports: [7000],
  ruleset: null,
};
const dropping = `table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		tcp dport { 22, 443 } accept
		udp dport 6990-7010 accept
	}
	chain forward {
		type filter hook forward priority filter; policy drop;
	}
}
`;

function findingOf(check: string, changes: Partial<QuicFacts>) {
  return checkQuic({ ...facts, ...changes }, null).find((each) => each.check === check);
}

describe("checkQuic", () => {
  it("finds nothing without the section", () => {
    expect(checkQuic(null, null)).toEqual([]);
  });

  it("warns about each buffer that the kernel does not grant", () => {
    expect(findingOf("quic-buffers", {})).toMatchObject({ level: "ok", measure: null });
    const granted = { receiveBytes: 212_992, sendBytes: wantedBytes };
    expect(findingOf("quic-buffers", { granted })).toMatchObject({
      level: "warn",
      finding: "receive buffer: a socket gets 212992 bytes instead of 8388608 (net.core.rmem_max)",
      remedy: expect.stringContaining("sysctl -w net.core.rmem_max=67108864"),
      measure: measures["quic-buffers"],
    });
    const [, send] = checkQuic({ ...facts, granted: { ...granted, sendBytes: 1 } }, null);
    expect(send?.remedy).toContain("net.core.wmem_max");
  });

  it("warns about a packet filter without a rule for the port", () => {
    expect(findingOf("quic-firewall", {})).toBeUndefined();
    expect(findingOf("quic-firewall", { ruleset: dropping })?.level).toBe("ok");
    expect(findingOf("quic-firewall", { ruleset: dropping, ports: [9000] })).toMatchObject({
      level: "warn",
      finding: "nftables drops incoming packets, and no rule accepts UDP port 9000",
      remedy: "nft insert rule inet filter input udp dport 9000 accept",
    });
  });

  it("shows the fingerprint, or why the file cannot be used", () => {
    const path = "data/quic-certificate.pem";
    const found = (fingerprint: string | null, error: string | null) =>
      checkQuic(facts, { path, fingerprint, error }).find(
        (each) => each.check === "quic-certificate",
      );
    expect(found("AB:CD", null)).toMatchObject({
      level: "ok",
      finding: "data/quic-certificate.pem: SHA-256 AB:CD",
    });
    expect(found(null, null)?.finding).toContain("does not exist yet");
    expect(found(null, "broken")).toMatchObject({ level: "fail", finding: "broken" });
  });
});

describe("nftRemedy", () => {
  it.each([
    ["", 7000, null],
    ["table ip nat {\n\tchain input {\n\t}\n}\n", 7000, null],
    [dropping.replace("policy drop", "policy accept"), 9000, null],
    [dropping.replace("6990-7010", "{ 53, 7000 }"), 7000, null],
    [dropping.replace("udp dport 6990-7010", "meta l4proto udp th dport 7000"), 7000, null],
    [dropping.replace("6990-7010", "@open_ports"), 7000, null],
    [dropping, 443, "nft insert rule inet filter input udp dport 443 accept"],
    [dropping, 7011, "nft insert rule inet filter input udp dport 7011 accept"],
  ])("%#", (ruleset, port, remedy) => {
    expect(nftRemedy(ruleset, port)).toBe(remedy);
  });
});

describe("readQuicFacts", () => {
  const least = "relay: { shredVersion: 1, authentication: off }\n";
  const configOf = (quic: string) =>
    parseConfig(
      `${least}http: {}\ntips: { addresses: [3aKEXLHoBesEJYX3vk47KZmsW46BKFremFmaRDTh9cBG] }\nquic: ${quic}\n`,
      "test",
    );
  const reader = {
    readText: () => null,
    list: () => [],
    run: (...words: string[]) => words.join(" "),
  };

  it("asks a real socket for the buffers, and the packet filter for open listeners", () => {
    const found = readQuicFacts(configOf("{}"), reader);
    expect(found).toMatchObject({
      wantedBytes,
      limits: { receiveBytes: 67_108_864, sendBytes: 16_777_216 },
      ports: [7000, 9000],
      ruleset: "nft list ruleset",
    });
    expect(found?.granted?.receiveBytes).toBeGreaterThan(0);
    expect(found?.granted?.receiveBytes).toBeLessThanOrEqual(wantedBytes);
    const local = '{ listen: ["127.0.0.1:7000"], protectedListen: [] }';
    expect(readQuicFacts(configOf(local), reader)).toMatchObject({ ports: [], ruleset: null });
    expect(readQuicFacts(parseConfig(least, "test"), reader)).toBe(null);
  });
});
