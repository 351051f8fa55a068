// Router: the view of an address. "#/transactions/5h6x…" is the view "transactions" with an
// argument.
//
// Pure; the shell listens to changes of the address.

export const viewNames = ["overview", "feed", "tips", "transactions", "keys", "operator"] as const;
export type ViewName = (typeof viewNames)[number];

export interface Route {
  readonly view: ViewName;
  /** The decoded text after the view's name; null without one. */
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

/** Unknown addresses open the overview, so that old bookmarks work. */
export function routeOf(hash: string): Route {
  const [, name = "", argument = ""] = hash.split("/");
  if (!isViewName(name)) return { view: "overview", argument: null };
  return { view: name, argument: argument === "" ? null : decoded(argument) };
}

export function hashOf(view: ViewName, argument: string | null = null): string {
  return argument === null ? `#/${view}` : `#/${view}/${encodeURIComponent(argument)}`;
}
