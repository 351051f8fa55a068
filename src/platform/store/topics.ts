// Topics of news: which of the changes that others told concern one store?
//
// Called by the stores that are followed in memory. A text is "topic" or "topic rest"; what is not known
// here is somebody else's and is passed over.

import type { SqlDriver } from "./driver.ts";

type News = readonly string[] | null;

/** What stands behind the topic, in order; null: anything may have changed. */
function restsOf(news: News, topic: string): readonly string[] | null {
  if (news === null) return null;
  return news.flatMap((text) => {
    if (text === topic) return [""];
    return text.startsWith(`${topic} `) ? [text.slice(topic.length + 1)] : [];
  });
}

/** Told of news of that topic alone, and of null. Returns how to end that. */
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
