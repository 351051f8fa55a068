// Restarts a sandbox leader at its port, which another process may have occupied meanwhile.

import type { TpuServer } from "../../../src/sandbox/tpu/tpu-server.ts";
import { until } from "../network/udp-receiver.ts";

const triesMax = 20;

export async function restart(server: TpuServer): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await server.restart();
    } catch (thrown) {
      if (tries >= triesMax) throw thrown;
      const nextMs = performance.now() + 100;
      await until(() => performance.now() > nextMs, "the next try");
    }
  }
}
