// Hooks for components: topics of the live feed and calls. A component is redrawn only when a
// topic that it uses has changed.

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import type { LiveTopics, SessionView } from "../types.ts";
import { ApiError, canRetry, messageOf } from "./api.ts";
import { nowMs } from "./clock.ts";
import type { Live, Subject } from "./live.ts";
import type { Topic } from "./live-readers.ts";

export interface SessionServices {
  readonly session: SessionView;
  readonly live: Live;
  /** Reads the session again, for example after its key has changed. */
  readonly renew: () => void;
  /** Ends the session on this page and shows the reason. */
  readonly end: (reason: string) => void;
  /** Shows the text at the bottom of the page and announces it to screen readers. */
  readonly announce: (text: string) => void;
}

export const SessionContext = createContext<SessionServices | null>(null);

export function useSessionContext(): SessionServices {
  const found = useContext(SessionContext);
  if (!found)
    throw new Error("view rendered outside of a session; expected a SessionContext above it");
  return found;
}

function useSubject(subject: Subject): Live {
  const { live } = useSessionContext();
  const [, draw] = useState(0);
  const drawn = live.versionOf(subject);
  // Updates between rendering and subscribing would be lost without this comparison.
  useEffect(() => {
    const drawAgain = () => draw((n) => n + 1);
    const end = live.subscribe(subject, drawAgain);
    if (live.versionOf(subject) !== drawn) drawAgain();
    return end;
  }, [live, subject]);
  return live;
}

/** Undefined before the topic's first message. */
export function useTopic<T extends Topic>(topic: T): LiveTopics[T] | undefined {
  return useSubject(topic).topics[topic];
}

export function useConnection(): Live {
  return useSubject("connection");
}

/** Whether the shown values are no longer updated. */
export function useIsStale(): boolean {
  return useConnection().connection.kind !== "live";
}

export function useFault(): string | null {
  return useSubject("fault").fault;
}

/** The service's current time; redraws every second. */
export function useNow(): number {
  useSubject("update");
  return nowMs();
}

export type Loaded<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "failed"; readonly message: string; readonly canRetry: boolean }
  | { readonly kind: "ready"; readonly value: T };

/** Runs a view's calls; a response with status 401 ends the session. */
function useCalls(): <T>(work: Promise<T>) => Promise<T> {
  const { end } = useSessionContext();
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

/** Returns the result of `load` and a function that reloads it. `load` must keep its identity. */
export function useLoaded<T>(load: () => Promise<T>): [loaded: Loaded<T>, again: () => void] {
  const run = useCalls();
  const [loaded, setLoaded] = useState<Loaded<T>>({ kind: "loading" });
  const asked = useRef(0);
  const again = useCallback(() => {
    const mine = ++asked.current;
    const settle = (value: Loaded<T>) => {
      if (asked.current === mine) setLoaded(value);
    };
    run(load()).then(
      (value) => settle({ kind: "ready", value }),
      (error: unknown) =>
        settle({ kind: "failed", message: messageOf(error), canRetry: canRetry(error) }),
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

export interface Action {
  readonly isBusy: boolean;
  readonly failure: string | null;
  /** The failure is about a value of the user, not about the service. */
  readonly isInputRefused: boolean;
  readonly run: (work: () => Promise<void>) => Promise<void>;
}

/** State of a button or form: it runs one action at a time and shows its failure. */
export function useAction(): Action {
  const calls = useCalls();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const [isInputRefused, setInputRefused] = useState(false);
  const run = useCallback(
    async (work: () => Promise<void>) => {
      setBusy(true);
      setFailure(null);
      try {
        await calls(work());
      } catch (error) {
        setFailure(messageOf(error));
        setInputRefused(error instanceof ApiError && error.status === 400);
      }
      setBusy(false);
    },
    [calls],
  );
  return { isBusy, failure, isInputRefused, run };
}

/** The element's width in CSS pixels; 0 before the first measurement. */
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
