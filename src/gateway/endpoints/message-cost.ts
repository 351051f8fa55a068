// The cost of reading a message of a WebSocket, in bytes: an object takes longer than its text.
//
// Used by subscriptions.ts for the rate that all sockets of a key share. Each socket has limits of its own
// (http/message-allowance.ts).

/** Arrays and objects of a message that cost nothing in addition to their bytes: more than a batch has. */
const freeBrackets = 256;
/** An array or object takes as long to read as so many bytes of text. */
const bracketBytes = 64;

export function messageCost(text: string): number {
  return text.length + bracketBytes * Math.max(0, bracketsIn(text) - freeBrackets);
}

function bracketsIn(text: string): number {
  let count = 0;
  for (const open of ["{", "["]) {
    for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at + 1)) count++;
  }
  return count;
}
