// Opens the engine that the configuration selects.

import { ShredwayError } from "../../core/errors.ts";
import type { Engine, EngineOptions } from "./engine.ts";
import { openNodeEngine } from "./node-engine.ts";
import type { EngineName } from "./types.ts";
import { openUwsEngine } from "./uws-engine.ts";

/** Throws ShredwayError "http_open" if the engine cannot be loaded. */
export async function openEngine(name: EngineName, options: EngineOptions): Promise<Engine> {
  if (name === "node") return openNodeEngine(options);
  const engine = await openUwsEngine(options);
  if (engine) return engine;
  throw new ShredwayError(
    "http_open",
    `http.engine: uWebSockets.js has no binary for Node ${process.versions.node} on ` +
      `${process.platform}-${process.arch}; use http.engine: node`,
  );
}
