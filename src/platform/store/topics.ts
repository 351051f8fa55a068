// Topics of change notifications: selects the changes that concern one store.
//
// Called by the stores that are cached in memory. A text is "topic" or "topic rest". Unknown topics
// belong to other stores and are ignored.

import type { SqlDriver } from "./driver.ts";

/** Changed by the store of public keys, and by the rotation of an API key. */
export const publicKeysTopic = "public_keys";

type News = readonly string[] | null;

/** The texts after the topic, in order; null: anything may have changed. */
function restsOf(news: News, topic: string): readonly string[] | null {
  if (news === null) return null;
  return news.flatMap((text) => {
    if (text === topic) return [""];
    return text.startsWith(`${topic} `) ? [text.slice(topic.length + 1)] : [];
  });
}

/**
 * Calls the listener for changes of that topic and for null. Returns a function that removes it.
 */
export function onNewsOf(
  driver: Pick<SqlDriver, "onForeignChange">,
  topic: string,
  listener: (rests: readonly string[] | null) => void,
): () => void {
  return driver.onForeignChange((news) => {
    const rests = restsOf(news, topic);
    if (rests === null || rests.length > 0) listener(rests);
  });
}
