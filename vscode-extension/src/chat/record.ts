/**
 * Writing turns into the ledger, so that none is lost. Rules:
 *
 * 1. A turn has one idempotency key for all tries: an append whose reply was lost is not there twice.
 * 2. A failure that may pass (the server restarts, another process holds the ledger) is tried again, TRIES in all.
 * 3. What still could not be written is kept in memory, and written before the session's next turn, or when the
 *    user presses the button. At most MOST_KEPT turns wait.
 */

import type { Nexus } from "../nexus";
import type { AppendResult, Requests } from "../protocol";
import { codeOf } from "./failures";

type Turn = Requests["nexus/session/append"]["params"] & { idempotencyKey: string };

const TRIES = 3;
const PAUSE_MS = 500;
const MOST_KEPT = 50;

/** Codes of failures that the same append cannot get over. */
const FINAL = new Set([
  "key-reused",
  "empty-append",
  "bad-text",
  "bad-session-name",
  "invalid-params",
  "unknown-folder",
  "folder-removed",
  "ledger-full",
  "ledger-io",
  "ledger-read-only",
  "ledger-corrupt",
  "ledger-foreign",
  "ledger-newer",
  "ledger-url",
]);

export class Recorder {
  private readonly kept = new Map<string, Turn>();

  /** `ready` resolves when the daemon can be asked again, or after its own time limit. */
  constructor(
    private readonly nexus: Nexus,
    private readonly ready: () => Promise<void>,
    private readonly pause: (ms: number) => Promise<void> = sleep,
  ) {}

  /** Write a turn. Rejects with the last failure; the turn then waits under its key. */
  async write(turn: Turn): Promise<AppendResult> {
    try {
      const appended = await this.attempt(turn);
      this.kept.delete(turn.idempotencyKey);
      return appended;
    } catch (error) {
      this.keep(turn);
      throw error;
    }
  }

  /** Write a turn that waits, because the user asks. Undefined where it does not wait any more. */
  async writeKept(key: string): Promise<AppendResult | undefined> {
    const turn = this.kept.get(key);
    return turn === undefined ? undefined : this.write(turn);
  }

  /** Write what waits for a session, oldest first. Rejects with the first failure. */
  async catchUp(folder: string, session: string): Promise<void> {
    for (const turn of [...this.kept.values()]) {
      if (turn.workspaceFolder === folder && turn.session === session) {
        await this.write(turn);
      }
    }
  }

  private async attempt(turn: Turn): Promise<AppendResult> {
    for (let tried = 1; ; tried++) {
      try {
        return await this.nexus.request("nexus/session/append", turn);
      } catch (error) {
        if (tried === TRIES || FINAL.has(codeOf(error) ?? "")) {
          throw error;
        }
        await this.pause(PAUSE_MS * tried);
        await this.ready();
      }
    }
  }

  private keep(turn: Turn): void {
    this.kept.set(turn.idempotencyKey, turn);
    for (const key of this.kept.keys()) {
      if (this.kept.size <= MOST_KEPT) {
        break;
      }
      this.kept.delete(key);
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
