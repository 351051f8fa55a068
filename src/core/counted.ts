// A number with its noun in singular or plural, for messages.

/** "1 source", "2 sources"; `many`: the plural of a noun that needs more than an s. */
export function counted(count: number, noun: string, many = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : many}`;
}
