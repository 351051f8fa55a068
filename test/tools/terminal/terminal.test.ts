import { describe, expect, it } from "vitest";
import { Terminal } from "../../../src/tools/terminal/terminal.ts";

function screen(options: { live: boolean; dumb?: boolean; rows?: number; columns?: number }) {
  const written: string[] = [];
  const errors: string[] = [];
  const terminal = new Terminal({
    stdout: {
      write: (text) => written.push(text),
      isTTY: options.live,
      rows: options.rows,
      columns: options.columns,
    },
    stderr: { write: (text) => errors.push(text), isTTY: options.live, columns: options.columns },
    stopped: new AbortController().signal,
    self: "shredway",
    colours: true,
    movesCursor: options.dumb !== true,
  });
  return { terminal, written, errors };
}

describe("Terminal", () => {
  it("draws over its last block, and below a finished one", () => {
    const { terminal, written } = screen({ live: true });
    terminal.redraw(["a", "b"]);
    terminal.redraw(["c"]);
    terminal.endBlock();
    terminal.redraw(["d"]);
    expect(written).toEqual([
      "a\u001b[K\nb\u001b[K\n\u001b[J",
      "\u001b[2Ac\u001b[K\n\u001b[J",
      "d\u001b[K\n\u001b[J",
    ]);
  });

  it("never draws more lines than it can overwrite, nor longer ones", () => {
    const { terminal, written } = screen({ live: true, rows: 3, columns: 5 });
    terminal.redraw(["123456", "b", "c", "d"]);
    expect(written[0]).toBe("1234…\u001b[K\nb\u001b[K\n\u001b[J");
  });

  it("moves no cursor on a terminal without cursor movement", () => {
    const { terminal, written, errors } = screen({ live: true, dumb: true });
    expect(terminal.isLive).toBe(false);
    terminal.progress("50 %");
    terminal.note("done");
    terminal.line("x");
    expect([errors, written]).toEqual([["done\n"], ["x\n"]]);
  });

  it("shows progress and colours only on a terminal", () => {
    const live = screen({ live: true });
    live.terminal.progress("50 %");
    live.terminal.note("done");
    expect(live.errors).toEqual(["\r50 %\u001b[K", "\r\u001b[K", "done\n"]);
    expect(live.terminal.paint.bold("x")).toBe("\u001b[1mx\u001b[0m");
    const piped = screen({ live: false });
    piped.terminal.progress("50 %");
    piped.terminal.clearProgress();
    expect(piped.errors).toEqual([]);
    expect(piped.terminal.paint.bold("x")).toBe("x");
  });
});
