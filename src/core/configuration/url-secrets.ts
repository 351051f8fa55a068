// Masks the secrets of URLs and headers in texts.
//
// Called for every message about a node or a partner, because their own error messages may repeat
// the URL or the key of the request.

const mask = "[masked]";
/** Shorter parts are words ("v1", "api"): masking them would hide the rest of a sentence. */
const partLengthMin = 4;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a lone "%" is allowed in an address
  }
}

function formsOf(text: string): string[] {
  return [text, decoded(text), encodeURIComponent(text), encodeURIComponent(decoded(text))];
}

/** Value of the Authorization header for the user and password in `url`; null: the URL has no user. */
export function basicAuthorization({ username, password }: URL): string | null {
  if (username === "" && password === "") return null;
  const user = `${decoded(username)}:${decoded(password)}`;
  return `Basic ${Buffer.from(user).toString("base64")}`;
}

/** Returns a function that hides the secrets of `url` and `headers` in a text. */
export function maskerOf(
  url: URL,
  headers: Readonly<Record<string, string>> = {},
): (text: string) => string {
  const { username, password, pathname, searchParams } = url;
  const basic = basicAuthorization(url);
  const values = [...Object.values(headers), ...(basic === null ? [] : [basic])];
  const parts = [
    username,
    password,
    ...pathname.split("/"),
    ...searchParams.values(),
    ...values,
    ...values.flatMap((value) => value.split(/\s+/)),
  ];
  const secrets = [...new Set(parts.flatMap(formsOf))]
    .filter((part) => part.length >= partLengthMin)
    .toSorted((a, b) => b.length - a.length);
  return (text) => secrets.reduce((all, secret) => all.replaceAll(secret, mask), text);
}
