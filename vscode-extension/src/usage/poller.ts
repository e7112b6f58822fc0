/**
 * Polls the daemon for one value: keeps the last answer, and why it is old.
 *
 * 1. It sends requests only while its value is visible; a change in between is fetched when it is visible again.
 * 2. One request at a time, sent in the turn of the event loop after the change. A change during a request leads to
 *    another one after it, and never cancels it: answers keep coming during a stream of edits.
 * 3. The answer to a request from before `renew` is dropped.
 * 4. A failure keeps the last answer, and is retried after a growing delay unless a retry would fail again.
 */
import { NexusError } from "../nexus";

/** Failures that last until the server changes its state. */
const FINAL = new Set(["not-ready", "cancelled", "method-not-found"]);
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;

export interface Poller<T> {
  readonly value: T | undefined;
  /** Why the value is old or absent, for people. */
  readonly trouble: string | undefined;
  /** Whether the value is for what was in focus before. */
  readonly stale: boolean;
  /** The value may have changed. */
  poke(): void;
  /** Another value is needed: cancels the request, and marks the last answer as stale. */
  renew(): void;
  /** Shows or hides the value: polling stops while it is hidden. */
  setVisible(isVisible: boolean): void;
  dispose(): void;
}

/** `notify` is called after every answer or failure. */
export function makePoller<T>(ask: (signal: AbortSignal) => Promise<T>, notify: () => void): Poller<T> {
  let value: T | undefined;
  let trouble: string | undefined;
  let stale = false;
  let isVisible = false;
  let due = true;
  let running: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;

  function schedule(wait: number): void {
    if (!isVisible || !due || running || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      if (isVisible) void run();
    }, wait);
  }

  async function run(): Promise<void> {
    const mine = new AbortController();
    running = mine;
    due = false;
    try {
      const answer = await ask(mine.signal);
      if (running !== mine) return;
      [value, trouble, stale, failures] = [answer, undefined, false, 0];
    } catch (error) {
      if (running !== mine) return;
      failed(error);
    }
    running = undefined;
    // first of all: who looks again because of a failure would ask again at once
    schedule(failures ? Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LAST_RETRY_MS) : 0);
    notify();
  }

  function failed(error: unknown): void {
    if (stale) value = undefined;
    stale = false;
    trouble = error instanceof Error ? error.message : String(error);
    failures += 1;
    due ||= !(error instanceof NexusError && FINAL.has(error.code));
  }

  /** Drops the running request: its answer would be outdated. */
  function drop(): void {
    running?.abort();
    running = undefined;
    if (timer !== undefined) clearTimeout(timer);
    timer = undefined;
  }

  return {
    get value() {
      return value;
    },
    get trouble() {
      return trouble;
    },
    get stale() {
      return stale;
    },
    poke() {
      due = true;
      if (failures) drop();
      failures = 0;
      schedule(0);
    },
    renew() {
      drop();
      [due, stale, failures] = [true, value !== undefined, 0];
      schedule(0);
    },
    setVisible(visible) {
      isVisible = visible;
      if (isVisible) schedule(0);
    },
    dispose() {
      isVisible = false;
      drop();
    },
  };
}
