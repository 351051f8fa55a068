// The cluster around the service under test: chain, node, partners and sources of the sandbox, in a
// process of its own.
//
// Started by cluster.ts: fork("cluster-process.ts", [FOLDER]). It ends with the channel.

import { systemClock } from "../../src/core/clock.ts";
import { createLogger } from "../../src/core/log.ts";
import { loadQuiche } from "../../src/core/quic/quiche.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { SandboxChain } from "../../src/sandbox/chain/chain.ts";
import { SandboxKeyPair } from "../../src/sandbox/chain/keys.ts";
import { Delivery } from "../../src/sandbox/delivery.ts";
import { ensureKeyFile } from "../../src/sandbox/key-files.ts";
import type { PartnerServer } from "../../src/sandbox/partners/partner-endpoint.ts";
import { SandboxPartners } from "../../src/sandbox/partners/partners.ts";
import { sandboxPace, sandboxSources, tickMs } from "../../src/sandbox/plan.ts";
import { RpcEndpoint } from "../../src/sandbox/rpc/endpoint.ts";
import { paced } from "../../src/sandbox/sandbox.ts";
import { SourceFeed } from "../../src/sandbox/source-feed.ts";
import { SandboxTpu } from "../../src/sandbox/tpu/tpu-leaders.ts";
import {
  type ClusterAnswer,
  type ClusterCommand,
  type PartnerName,
  payerName,
  soakSeed,
} from "./cluster-messages.ts";

const [folder = ""] = process.argv.slice(2);
const clock = systemClock;
const log = createLogger({ level: "silent" });
const lamports = 1_000_000_000_000_000n;
const stakeLamports = 100_000_000_000_000n;

const addresses = (count: number, name: string): string[] =>
  Array.from({ length: count }, (_, i) => SandboxKeyPair.named(soakSeed, `${name} ${i}`).address);
const tipAddresses = addresses(sandboxPace.tipAddresses, "tip account");
const shredTipAddresses = addresses(sandboxPace.shredTipAddresses, "shred tip account");
const funding = ensureKeyFile(folder, "funding");
const identity = ensureKeyFile(folder, "identity");
const payer = SandboxKeyPair.named(soakSeed, payerName);

let isPaused = false;
const feeds: SourceFeed[] = [];
const players: PacedSender[] = [];
const chain = await SandboxChain.open({
  ...sandboxPace,
  seed: soakSeed,
  genesisSeconds: clock.nowNs() / 1_000_000_000n,
  background: { tipAddresses },
  funded: new Map([
    [payer.address, lamports],
    [funding.address, lamports],
    ...[...tipAddresses, ...shredTipAddresses].map((each): [string, bigint] => [
      each,
      1_000_000_000n,
    ]),
  ]),
  onShreds: ({ packets }) => {
    const nowNs = clock.monotonicNs();
    if (isPaused) return;
    for (const feed of feeds) feed.add(paced(packets), nowNs);
  },
});
const quiche = loadQuiche();
const stakes = new Map([[identity.address, stakeLamports]]);
const tpu = quiche ? await SandboxTpu.open(chain, { quiche, clock }, { stakes }) : null;
const endpoint = await RpcEndpoint.open(chain, clock, {
  listen: "127.0.0.1:0",
  shredVersion: sandboxPace.shredVersion,
  log,
  tpuQuicAddress: (validator) => tpu?.addressOf(validator) ?? null,
});
const partners = await SandboxPartners.open(chain, clock, { tipAddresses, log });

const partnerServers: Record<PartnerName, readonly PartnerServer[]> = {
  swqos: [partners.swqos],
  "block-builder": [partners.blockEngine],
  scheduler: [partners.scheduler],
  "alt-partner": [...partners.altPartners.values()],
};

function openFeeds(to: string): void {
  for (const [i, { address, profile }] of sandboxSources.entries()) {
    const player = PacedSender.open({ to, from: `${address}:0` });
    players.push(player);
    // The first source loses nothing, so that its datagrams are what every destination must get.
    const own = i === 0 ? { ...profile, loss: 0, forged: 0 } : profile;
    feeds.push(new SourceFeed({ delivery: new Delivery(own, soakSeed + i), player, clock }));
  }
  const tick = (): void => {
    chain.advanceTo(clock.monotonicNs());
    for (const feed of feeds) feed.tick(BigInt(2 * tickMs) * 1_000_000n);
  };
  clock.every(tickMs, tick);
  tick();
}

/** The timer sends what is queued. */
async function pauseFeeds(): Promise<void> {
  isPaused = true;
  while (feeds.some(({ waiting }) => waiting > 0)) await clock.sleep(tickMs);
}

function changeNoise({ loss, forged }: { loss: number; forged: number }): void {
  for (const { delivery } of feeds.slice(1)) {
    delivery.profile = { ...delivery.profile, loss, forged };
  }
}

async function apply(command: ClusterCommand): Promise<ClusterAnswer> {
  switch (command.do) {
    case "feed":
      openFeeds(command.to);
      break;
    case "pause":
      await pauseFeeds();
      break;
    case "resume":
      isPaused = false;
      break;
    case "count": {
      const sent = Number(players[0]?.counts().sent ?? 0n);
      return { kind: "count", sent, slot: Number(chain.currentSlot) };
    }
    case "partner":
      for (const { faults } of partnerServers[command.name]) {
        Object.assign(faults, { answer: command.answer, delayMs: command.delayMs });
      }
      break;
    case "partner-down":
      for (const server of partnerServers[command.name]) {
        if (command.isDown) server.stop();
        else await server.start();
      }
      break;
    case "node": {
      const { refuse, delayMs, dropNotifications } = command;
      Object.assign(endpoint.faults, { refuse, delayMs, dropNotifications });
      break;
    }
    case "skip":
      chain.faults.skipNext(command.slots);
      break;
    case "fork":
      chain.faults.forkNext(command.slots);
      break;
    case "restart":
      chain.faults.restartNext(command.outcome);
      break;
    case "noise":
      changeNoise(command);
      break;
  }
  return { kind: "done" };
}

const answer = (value: ClusterAnswer): void => void process.send?.(value);
let last = Promise.resolve();
process.on("message", (command: ClusterCommand) => {
  last = last.then(async () => answer(await apply(command)));
});
process.on("disconnect", () => process.exit(0));
// The terminal signals the whole group; the soak test ends this process.
process.on("SIGINT", () => {});
answer({
  kind: "ready",
  rpcUrl: `http://${endpoint.address}`,
  routes: [...partners.routeConfigs(), ...(tpu ? [tpu.routeConfig(identity.path)] : [])],
  tipAddresses,
  shredTipAddresses,
  fundingKeyFile: funding.path,
});
