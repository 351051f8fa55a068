// Node lock name: the database lock that a node holds while it runs.
//
// Taken by platform/store/node-lock.ts; tried by SubmissionFailover, which adopts submissions of a node
// whose lock is free.

export function nodeLockOf(node: string): string {
  return `node ${node}`;
}
