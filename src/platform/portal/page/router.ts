// Which view an address names: "#/transactions/5h6x…" is the view "transactions" with an argument.
//
// Pure; the shell listens to the address bar.

export const viewNames = ["overview", "feed", "tips", "transactions", "keys", "operator"] as const;
export type ViewName = (typeof viewNames)[number];

export interface Route {
  readonly view: ViewName;
  /** What stands behind the view's name, decoded; null: nothing. */
  readonly argument: string | null;
}

function isViewName(text: string): text is ViewName {
  return viewNames.some((name) => name === text);
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Unknown addresses are the overview: an old bookmark must not end in nothing. */
export function routeOf(hash: string): Route {
  const [, name = "", argument = ""] = hash.split("/");
  if (!isViewName(name)) return { view: "overview", argument: null };
  return { view: name, argument: argument === "" ? null : decoded(argument) };
}

export function hashOf(view: ViewName, argument: string | null = null): string {
  return argument === null ? `#/${view}` : `#/${view}/${encodeURIComponent(argument)}`;
}
