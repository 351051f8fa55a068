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

  const reload = gateway.prepare(configOf(directory, newTips));
  expect(await http.call("getTipAccounts")).toEqual(oldTips);
  expect(reload.apply()).toEqual([]);
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
  const { openMax } = gateway.facts().gateway;
  // The second time, nothing has been restarted either.
  for (let i = 0; i < 2; i++)
    expect(gateway.prepare(wanted).apply()).toEqual(["gateway.openMax", "data.directory"]);
  expect(gateway.facts().gateway.openMax).toBe(openMax);
  expect(gateway.prepare(configOf(directory, oldTips)).apply()).toEqual([]);
});

it("rejects a file whose new route cannot be opened, and changes nothing", async () => {
  const directory = temporaryFolder();
  const log = createLogger({ level: "silent" });
  const route = (name: string) => ({ name, kind: "swqos" as const, url: "http://127.0.0.1:9/" });
  const config = configOf(directory, oldTips, { routes: [route("a")] });
  const gateway = closing(await openGateway({ config, log, clock: systemClock }));
  const names = () => gateway.snapshot().routes.map(({ name }) => name);
  const tpu = {
    name: "direct",
    kind: "tpu",
    identityFile: `${directory}/missing.json`,
    quicAddresses: { [pubkeyOf(new Uint8Array(32).fill(6))]: "127.0.0.1:9" },
  };
  const wanted = configOf(directory, newTips, { routes: [route("b"), tpu] });
  expect(() => gateway.prepare(wanted)).toThrow(/missing\.json/);
  expect(names()).toEqual(["a"]);
  gateway.prepare(configOf(directory, newTips, { routes: [route("b")] })).abandon();
  expect(names()).toEqual(["a"]);
});

it("gives the URL of a listener that serves the portal", async () => {
  const log = createLogger({ level: "silent" });
  const listen = ["127.0.0.1:0", "127.0.0.2:0"];
  const openedWith = async (more: object, portal: object = {}) => {
    const http = { listen, webSocketListen: [], ...more };
    const config = configOf(temporaryFolder(), oldTips, { http, portal });
    const gateway = closing(await openGateway({ config, log, clock: systemClock }));
    expect(gateway.portalUrl).toBeNull();
    await gateway.start();
    return gateway;
  };
  const others = { listen, serves: ["tips", "tracker"] };
  const own = { listen, serves: ["portal"] };
  const tables: [http: object, address: number][] = [
    [{}, 0],
    [{ split: [own] }, 0],
    [{ serves: ["gateway"], split: [others, own, own] }, 4],
  ];
  for (const [http, address] of tables) {
    const gateway = await openedWith(http);
    expect(gateway.portalUrl).toBe(`http://${gateway.addresses[address]}/portal/`);
    expect((await fetch(gateway.portalUrl ?? "")).status).toBe(200);
  }
  expect((await openedWith({ serves: ["gateway"], split: [others] })).portalUrl).toBeNull();
  expect((await openedWith({}, { enabled: false })).portalUrl).toBeNull();
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
