// News as payloads of NOTIFY: many texts in few payloads, and back.
//
// Written by writer.ts, read by news.ts. A payload is the id of the writer and a JSON
// list of texts; the id alone, or what another version wrote, says that anything may have changed. A
// rule: no I/O.

/** The server takes less than 8,000 bytes. */
const bytesMax = 7_900;
/** Of one commit. Whoever hears of more reads everything anew more quickly than one by one. */
const payloadsMax = 64;
/** Of a writer's id. */
const idLength = 16;
const brackets = 2;

/** What one transaction tells; undefined: it says nothing in particular. */
export interface Told {
  readonly isDurable: boolean;
  readonly news?: readonly string[] | undefined;
}

/** Payloads of one commit with these transactions, in their order. */
export function payloadsOf(id: string, transactions: readonly Told[]): string[] {
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

/** Its texts; null: anything may have changed; "own": of the writer with the id `own`. */
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
