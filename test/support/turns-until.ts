// Waits for a condition that usually holds within a few turns of the event loop.

const turnsMax = 200;
const pauseMs = 2;

/**
 * Settles when the condition is true: checks it in each turn at first, then every 2 ms, because a loop without
 * pauses takes a whole processor.
 */
export async function turnsUntil(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    await new Promise((resolve) => {
      if (turns < turnsMax) setImmediate(resolve);
      else setTimeout(resolve, pauseMs);
    });
  }
}
