/**
 * When a server that ended is started again.
 *
 * 1. The waits are 1, 2, 4, 8, 16, 30, 30 … seconds; a run that lasted a minute begins anew.
 * 2. After `MOST` ends within `WITHIN_MS` it is given up, until somebody asks.
 */

const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;
const STEADY_MS = 60_000;
export const MOST = 7;
export const WITHIN_MS = 5 * 60_000;

export interface Backoff {
  /** The server runs. */
  started(): void;
  /** The server ended: how many milliseconds to wait before the next start; undefined: give up. */
  ended(): number | undefined;
  reset(): void;
}

/** `now` in milliseconds. */
export function backoff(now: () => number = Date.now): Backoff {
  let ends: number[] = [];
  let since: number | undefined;
  let inRow = 0;
  return {
    started() {
      since = now();
    },
    ended() {
      const at = now();
      if (since !== undefined && at - since >= STEADY_MS) inRow = 0;
      since = undefined;
      ends = [...ends.filter((end) => at - end < WITHIN_MS), at];
      if (ends.length > MOST) return undefined;
      return Math.min(FIRST_MS * 2 ** inRow++, LONGEST_MS);
    },
    reset() {
      [ends, since, inRow] = [[], undefined, 0];
    },
  };
}
