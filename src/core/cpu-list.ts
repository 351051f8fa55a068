// Lists of CPUs in the kernel's text form ("0-2,7").

/** "0-2,7" -> [0, 1, 2, 7]; empty text: none. */
export function expandCpuList(text: string): number[] {
  return text
    .split(",")
    .filter((part) => part !== "")
    .flatMap((part) => {
      const [first = 0, last = first] = part.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    });
}

/** [7, 0, 1, 2] -> "0-2,7" */
export function formatCpuList(cpus: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const cpu of cpus.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && cpu === last[1] + 1) last[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(",");
}
