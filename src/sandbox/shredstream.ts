// Both directions of ShredStream in the sandbox: a block engine whose shreds the relay receives, and a
// subscriber of the relay's own block engine.
//
// Opened by open-sandbox.ts if the choice has `shredstream`.

import { formatAddress, parseEndpoint } from "../core/addresses/addresses.ts";
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import { ensureKeyFile } from "./key-files.ts";
import {
  sandboxRegion as region,
  sandboxPace,
  sandboxShredstream,
  sandboxSources,
  sandboxSubscriber,
} from "./plan.ts";
import { openReceiver } from "./receiver.ts";
import { SandboxEngine } from "./shredstream-engine.ts";
import { SandboxProxy } from "./shredstream-proxy.ts";

interface ShredstreamChoice {
  /** "ip:port" (IPv4) of the relay's block engine for subscribers; undefined: no ShredStream. */
  readonly listen: string | undefined;
  /** Folder of the key files. */
  readonly data: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface SandboxShredstream {
  readonly engine: SandboxEngine;
  readonly proxy: SandboxProxy;
  /** File of the key that the relay's block engine accepts. */
  readonly subscriberKeyFile: string;
  /** The section `shredstream` of the configuration. */
  readonly section: {
    readonly listen: string;
    readonly subscribers: Record<"name" | "tier" | "publicKey", string>[];
  };
  /** The source of kind "shredstream". */
  readonly source: ReturnType<typeof sourceOf>;
  close(): void;
}

function sourceOf(url: string, keyFile: string) {
  const { name, tier } = sandboxShredstream;
  const shredstream = { url, keyFile, regions: [region], publicAddress: "127.0.0.1" };
  return { name, kind: "shredstream" as const, tier, shredstream };
}

/** Connections to an address of this machine come from that address; those to loopback from 127.0.0.1. */
function subscriberHost(listen: string): string {
  const address = formatAddress(parseEndpoint(listen, { allowPortZero: true }).bytes);
  return /^(127\.|0\.0\.0\.0$)/.test(address) ? "127.0.0.1" : address;
}

/** null: not chosen. Throws ShredwayError: "http_open", or "config_invalid" if a key file cannot be used. */
export async function openShredstream(
  choice: ShredstreamChoice,
): Promise<SandboxShredstream | null> {
  const { listen, data, clock, log } = choice;
  if (listen === undefined) return null;
  const [own, subscriber] = [ensureKeyFile(data, "shredstream"), ensureKeyFile(data, "subscriber")];
  const { address: from, profile } = sandboxShredstream;
  const seed = sandboxPace.seed + sandboxSources.length;
  const { address: publicKey } = own;
  const engine = await SandboxEngine.open({ publicKey, from, region, profile, seed, clock, log });
  try {
    const host = subscriberHost(listen);
    const receiver = openReceiver({ ...sandboxSubscriber, host });
    const keyFile = subscriber.path;
    const proxy = new SandboxProxy({ receiver, host, keyFile, region, clock, log });
    return {
      engine,
      proxy,
      subscriberKeyFile: subscriber.path,
      section: { listen, subscribers: [{ ...sandboxSubscriber, publicKey: subscriber.address }] },
      source: sourceOf(engine.url, own.path),
      close: () => {
        proxy.close();
        engine.close();
      },
    };
  } catch (error) {
    engine.close();
    throw error;
  }
}
