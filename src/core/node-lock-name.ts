// Node lock name: the database lock that a node holds while it runs.
//
// Acquired by platform/store/node-lock.ts. SubmissionFailover tries it, and adopts the submissions
// of a node whose lock is free.

export function nodeLockOf(node: string): string {
  return `node ${node}`;
}
