/** Waiting for the daemon. */
import type { CancellationToken } from "vscode";
import { type Nexus, NexusError, type ServerState } from "../nexus";

const BUSY: ReadonlySet<ServerState> = new Set(["finding", "installing", "starting"]);

/**
 * Resolves when the daemon can be asked; one that is stopped is started. Rejects with NexusError: `not-ready` where it failed, or
 * takes longer than `limitMs`; `cancelled` where the user does not want to wait. `tell` is given what it is doing.
 */
export function whenReady(
  nexus: Nexus,
  limitMs: number,
  token?: CancellationToken,
  tell?: (doing: string) => void,
): Promise<void> {
  if (nexus.state === "ready") {
    return Promise.resolve();
  }
  if (nexus.state === "stopped") {
    nexus.restart().catch(() => undefined); // what became of it, its state says
  } else if (!BUSY.has(nexus.state)) {
    return Promise.reject(notReady(nexus));
  }
  return new Promise((resolve, reject) => {
    const finish = (error?: Error): void => {
      clearTimeout(timer);
      listening.dispose();
      cancelling?.dispose();
      error === undefined ? resolve() : reject(error);
    };
    const listening = nexus.onDidChangeState((state) => {
      if (state === "ready") {
        finish();
      } else if (BUSY.has(state) || state === "stopped") {
        tell?.(nexus.detail);
      } else {
        finish(notReady(nexus));
      }
    });
    const cancelling = token?.onCancellationRequested(() => finish(new NexusError("Cancelled.", "cancelled")));
    if (BUSY.has(nexus.state)) {
      tell?.(nexus.detail);
    }
    const timer = setTimeout(() => finish(notReady(nexus)), limitMs);
  });
}

function notReady(nexus: Nexus): NexusError {
  const why = nexus.detail === "" ? "" : ` ${nexus.detail}`;
  return new NexusError(`The Nexus server is not running (${nexus.state}).${why}`, "not-ready");
}
