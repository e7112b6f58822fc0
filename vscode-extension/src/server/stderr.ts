/** What a server says on its standard error: each line into the output, the last one as the reason of a failed start. */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";

/** How long to wait for the last words of a server that has ended. */
const LAST_WORDS_MS = 2_000;
/** What the language client says where the server is gone, in place of why. */
const GONE = /disposed|destroyed|closed|exited|EPIPE|ECONNRESET/i;

export class Stderr {
  private last = "";
  private ended: Promise<unknown> = Promise.resolve();

  /** Reads the stream to its end; `write` is called with each line. */
  read(stream: Readable, write: (line: string) => void): void {
    const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY, terminal: false });
    lines.on("line", (line) => {
      write(line);
      if (line.trim() !== "") this.last = line.trim();
    });
    this.ended = new Promise((resolve) => lines.once("close", resolve));
  }

  /** Why a start failed, for people. */
  async explain(error: unknown): Promise<Error> {
    const failure = error instanceof Error ? error : new Error(String(error));
    if (!GONE.test(failure.message)) return failure;
    await Promise.race([this.ended, wait(LAST_WORDS_MS)]);
    if (this.last === "") return new Error("The server ended at once, and did not say why.");
    return new Error(`The server ended at once: ${this.last}`);
  }
}
