/**
 * One thing that is asked of the daemon again and again: the last answer, and what is wrong with it.
 *
 * 1. It is asked only while somebody looks, and what changed meanwhile is asked for at the next look.
 * 2. One request at a time, begun in the turn of the loop after the change; what changes while it runs is asked for right after, never instead: under a
 *    stream of edits answers keep coming.
 * 3. An answer to what was asked before `renew` is dropped.
 * 4. A failure keeps the last answer, and is tried again after a while that grows; not where it would fail again.
 */
import { NexusError } from "../nexus";

/** Failures that only another state of the server, or another server, mends. */
const FINAL = new Set(["not-ready", "cancelled", "method-not-found"]);
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 30_000;

export interface Asked<T> {
  readonly value: T | undefined;
  /** Why the value is old or absent, for people. */
  readonly trouble: string | undefined;
  /** Whether the value belongs to what was looked at before. */
  readonly stale: boolean;
  /** What is asked about may have changed. */
  poke(): void;
  /** Something else is asked about: what runs is cancelled, what is known is stale. */
  renew(): void;
  /** Whether somebody looks. */
  look(wanted: boolean): void;
  dispose(): void;
}

/** `tell` is called after every answer or failure. */
export function asked<T>(ask: (signal: AbortSignal) => Promise<T>, tell: () => void): Asked<T> {
  let value: T | undefined;
  let trouble: string | undefined;
  let stale = false;
  let wanted = false;
  let due = true;
  let running: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;

  function schedule(wait: number): void {
    if (!wanted || !due || running || timer !== undefined) return;
    timer = setTimeout(() => {
      timer = undefined;
      if (wanted) void run();
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
    tell();
    schedule(failures ? Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LAST_RETRY_MS) : 0);
  }

  function failed(error: unknown): void {
    if (stale) value = undefined;
    stale = false;
    trouble = error instanceof Error ? error.message : String(error);
    failures += 1;
    due ||= !(error instanceof NexusError && FINAL.has(error.code));
  }

  /** Forget the request that runs: its answer would be older than what is known. */
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
    look(now) {
      wanted = now;
      if (wanted) schedule(0);
    },
    dispose() {
      wanted = false;
      drop();
    },
  };
}
