import { setTimeout as sleep } from "node:timers/promises";

/** Asks until the answer is the wanted one. Rejects with the last answer after `ms` milliseconds. */
export async function until<T>(ask: () => Promise<T> | T, good: (answer: T) => boolean, ms = 30_000): Promise<T> {
  const deadline = Date.now() + ms;
  for (;;) {
    const answer = await ask();
    if (good(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`still after ${ms} ms: ${JSON.stringify(answer)?.slice(0, 2000)}`);
    await sleep(50);
  }
}
