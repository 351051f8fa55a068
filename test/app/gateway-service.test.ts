// Reload of a running gateway: the effect of an accepted and of a rejected configuration.

import { expect, it } from "vitest";
import { WebSocket } from "ws";
import { openGateway } from "../../src/app/compose-gateway.ts";
import { type Clock, sleepWith, systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { closing } from "../support/closing.ts";
import { createdKey } from "../support/gateway/created-key.ts";
import { quiche } from "../support/quic/quic-client.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tipsOf = (byte: number) => [pubkeyOf(new Uint8Array(32).fill(byte))];
const oldTips = tipsOf(5);
const newTips = tipsOf(6);

function configOf(directory: string, addresses: readonly string[], more: object = {}) {
  return completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0", webSocketListen: [] },
    data: { directory },
    tips: { addresses: [...addresses] },
    ...more,
  });
}

it("applies a reload to HTTP and to open WebSockets, but not before", async () => {
  const directory = temporaryFolder();
  const log = createLogger({ level: "silent" });
  const config = configOf(directory, oldTips);
  const gateway = closing(await openGateway({ config, log, clock: systemClock }));
  const text = await createdKey(gateway);
  await gateway.start();
  const host = gateway.addresses[0] ?? "";
  const http = new RpcClient(`http://${host}/relay?api-key=${text}`);
  const socket = new WebSocket(`ws://${host}/relay?api-key=${text}`);
  closing({ close: () => socket.terminate() });
  await new Promise((resolve) => socket.once("open", resolve));
  const ask = (): Promise<unknown> =>
    new Promise((resolve) => {
      socket.once("message", (data: Buffer) => resolve(JSON.parse(data.toString())));
      socket.send('{"jsonrpc":"2.0","id":1,"method":"getTipAccounts"}');
    });

  const take = gateway.prepare(configOf(directory, newTips));
  expect(await http.call("getTipAccounts")).toEqual(oldTips);
  expect(take()).toEqual([]);
  expect(await http.call("getTipAccounts")).toEqual(newTips);
  expect(await ask()).toMatchObject({ result: newTips });

  const closed = new Promise((resolve) => socket.once("close", resolve));
  const [key] = await gateway.keys.keys();
  await gateway.keys.revokeKey(key?.id ?? "", systemClock.nowNs());
  await gateway.refreshKeys();
  socket.send('{"jsonrpc":"2.0","id":2,"method":"getTipAccounts"}');
  expect(await closed).toBe(1008);
});

it("reports the keys that need a restart", async () => {
  const directory = temporaryFolder();
  const log = createLogger({ level: "silent" });
  const config = configOf(directory, oldTips);
  const gateway = closing(await openGateway({ config, log, clock: systemClock }));
  const wanted = configOf(`${directory}/other`, oldTips);
  wanted.gateway.openMax = 7;
  expect(gateway.prepare(wanted)()).toEqual(["gateway.openMax", "data.directory"]);
});

it("warns that it sells no shreds without a shred-tip address", async () => {
  const config = configOf(temporaryFolder(), oldTips);
  const log = createLogger({ level: "silent" });
  const gateway = closing(await openGateway({ config, log, clock: systemClock }));
  expect(gateway.warnings().join("\n")).toContain("tips.shredAddresses is empty");
});

it.skipIf(!quiche)("leaves no timer of its drain behind, once everything is answered", async () => {
  const graceMs = 3_600_000;
  const waiting = new Set<number>();
  let next = 0;
  const after: Clock["after"] = (delayMs, action) => {
    const timer = systemClock.after(delayMs, action);
    if (delayMs < graceMs / 2) return timer;
    const id = next++;
    waiting.add(id);
    const cancel = () => {
      waiting.delete(id);
      timer.cancel();
    };
    closing({ close: cancel });
    return { cancel };
  };
  const clock: Clock = { ...systemClock, after, sleep: sleepWith({ after }) };
  const quic = { listen: "127.0.0.1:0", protectedListen: [] };
  const config = configOf(temporaryFolder(), oldTips, { quic });
  const log = createLogger({ level: "silent" });
  const gateway = closing(await openGateway({ config, log, clock }));
  await gateway.start();
  await gateway.drain(graceMs);
  expect(waiting.size).toBe(0);
});
