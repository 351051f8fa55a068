// What components take from the live feed and from calls. A component that uses a topic is drawn anew
// when that topic changed, and at no other message.

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import type { LiveTopics, SessionView } from "../types.ts";
import { ApiError, messageOf } from "./api.ts";
import { nowMs } from "./clock.ts";
import type { Live, Subject } from "./live.ts";
import type { Topic } from "./wire-live.ts";

export interface Surroundings {
  readonly session: SessionView;
  readonly live: Live;
  /** Ends the session on this page, with what is said of it. */
  readonly end: (reason: string) => void;
  /** Says it at the foot of the page, and to screen readers. */
  readonly announce: (text: string) => void;
}

export const SurroundingsContext = createContext<Surroundings | null>(null);

export function useSurroundings(): Surroundings {
  const found = useContext(SurroundingsContext);
  if (!found) throw new Error("expected to stand inside of a session, got a view outside of it");
  return found;
}

function useSubject(subject: Subject): Live {
  const { live } = useSurroundings();
  const [, draw] = useState(0);
  const drawn = live.versionOf(subject);
  // `drawn` is of the drawing that subscribes: what came since then would be missed.
  useEffect(() => {
    const drawAgain = () => draw((n) => n + 1);
    const end = live.subscribe(subject, drawAgain);
    if (live.versionOf(subject) !== drawn) drawAgain();
    return end;
  }, [live, subject]);
  return live;
}

/** Undefined until it came. */
export function useTopic<T extends Topic>(topic: T): LiveTopics[T] | undefined {
  return useSubject(topic).topics[topic];
}

export function useConnection(): Live {
  return useSubject("connection");
}

export function useFault(): string | null {
  return useSubject("fault").fault;
}

/** The service's present moment; draws every second. */
export function useNow(): number {
  useSubject("beat");
  return nowMs();
}

export type Loaded<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "ready"; readonly value: T };

/** Runs calls of a view; one that answers 401 ends the session. */
function useCalls(): <T>(work: Promise<T>) => Promise<T> {
  const { end } = useSurroundings();
  return useCallback(
    async (work) => {
      try {
        return await work;
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) {
          end("Your session has ended. Sign in again.");
        }
        throw error;
      }
    },
    [end],
  );
}

/** What `load` answers, and how to ask again. `load` must not change from draw to draw. */
export function useLoaded<T>(load: () => Promise<T>): [loaded: Loaded<T>, again: () => void] {
  const run = useCalls();
  const [loaded, setLoaded] = useState<Loaded<T>>({ kind: "loading" });
  const asked = useRef(0);
  const again = useCallback(() => {
    const mine = ++asked.current;
    const tell = (value: Loaded<T>) => {
      if (asked.current === mine) setLoaded(value);
    };
    run(load()).then(
      (value) => tell({ kind: "ready", value }),
      (error: unknown) => tell({ kind: "failed", message: messageOf(error) }),
    );
  }, [run, load]);
  useEffect(() => {
    setLoaded({ kind: "loading" });
    again();
    return () => {
      asked.current++;
    };
  }, [again]);
  return [loaded, again];
}

interface Action {
  readonly isBusy: boolean;
  readonly failure: string | null;
  readonly run: (work: () => Promise<void>) => Promise<void>;
}

/** For buttons and forms: one thing at a time, and what went wrong. */
export function useAction(): Action {
  const calls = useCalls();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const run = useCallback(
    async (work: () => Promise<void>) => {
      setBusy(true);
      setFailure(null);
      try {
        await calls(work());
      } catch (error) {
        setFailure(messageOf(error));
      }
      setBusy(false);
    },
    [calls],
  );
  return { isBusy, failure, run };
}

/** The element's width in CSS pixels; 0 until it is known. */
export function useWidth(): [ref: (element: Element | null) => void, width: number] {
  const [element, setElement] = useState<Element | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element) return undefined;
    setWidth(Math.floor(element.getBoundingClientRect().width));
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.floor(entry.contentRect.width));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [setElement, width];
}
