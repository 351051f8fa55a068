// Payloads of NOTIFY: packs many changes into few payloads, and parses them.
//
// Written by writer.ts, read by news.ts. A payload is the id of the writer and a JSON list of texts. The
// id alone, or the payload of another version, means that anything may have changed. Pure.

/** The server accepts less than 8,000 bytes. */
const bytesMax = 7_900;
/**
 * Maximum number of changes in one commit; above it, reading everything is faster than reading one by
 * one.
 */
const payloadsMax = 64;
/** Length of a writer's id. */
const idLength = 16;
const brackets = 2;

/** The changes that one transaction reports; undefined: unspecified. */
export interface ChangeNotification {
  readonly isDurable: boolean;
  readonly news?: readonly string[] | undefined;
}

/** Payloads of one commit with these transactions, in order. */
export function payloadsOf(id: string, transactions: readonly ChangeNotification[]): string[] {
  const everything = transactions.some(({ isDurable, news }) => isDurable && !news);
  const texts = new Set(transactions.flatMap(({ news = [] }) => news));
  const payloads: string[] = [];
  let list: string[] = [];
  let bytes = 0;
  const end = (): void => {
    if (list.length > 0) payloads.push(`${id}[${list.join()}]`);
    list = [];
    bytes = id.length + brackets;
  };
  end();
  for (const text of texts) {
    const json = JSON.stringify(text);
    const more = Buffer.byteLength(json) + 1;
    if (bytes + more > bytesMax) end();
    if (bytes + more > bytesMax) return [id];
    list.push(json);
    bytes += more;
  }
  end();
  if (payloads.length > payloadsMax) return [id];
  return everything ? [...payloads, id] : payloads;
}

/** The texts; null: anything may have changed; "own": sent by the writer with the id `own`. */
export function newsOf(payload: string, own: string): readonly string[] | null | "own" {
  if (payload.startsWith(own)) return "own";
  try {
    const texts: unknown = JSON.parse(payload.slice(idLength));
    const isList = Array.isArray(texts) && texts.every((text) => typeof text === "string");
    return isList ? texts : null;
  } catch {
    return null;
  }
}
