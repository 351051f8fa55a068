// The list of methods that are passed on to the node: the default list with the changes of
// `gateway.readMethods`. Pure.
//
// Called by gateway-settings.ts, at startup and for a reload.

import { quote, ShredwayError } from "../core/errors.ts";
import { readMethodNames } from "../gateway/endpoints/read-methods.ts";
import { methods } from "../gateway/methods/method-table.ts";

interface ReadMethodChanges {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** Why the node's method must not be passed on; null: it may be. */
function obstacleOf(name: string, { remove }: ReadMethodChanges): string | null {
  if (Object.hasOwn(methods, name)) return "is a method of this service";
  if (/^send|[sS]ubscribe$/.test(name)) return "sends or subscribes";
  return remove.includes(name) ? "is also in gateway.readMethods.remove" : null;
}

/** The names of the methods that are passed on. Throws ShredwayError "config_invalid". */
export function readMethodsIn(changes: ReadMethodChanges): ReadonlySet<string> {
  for (const [index, name] of changes.add.entries()) {
    const obstacle = obstacleOf(name, changes);
    if (obstacle === null) continue;
    throw new ShredwayError(
      "config_invalid",
      `gateway.readMethods.add[${index}]: ${quote(name)} ${obstacle}; expected another method of the node`,
    );
  }
  for (const [index, name] of changes.remove.entries()) {
    if (readMethodNames.some((each) => each === name)) continue;
    throw new ShredwayError(
      "config_invalid",
      `gateway.readMethods.remove[${index}]: ${quote(name)} is not passed on by default; expected one of ` +
        readMethodNames.join(", "),
    );
  }
  const kept = readMethodNames.filter((name) => !changes.remove.includes(name));
  return new Set([...kept, ...changes.add]);
}
