/** Waiting for the daemon, with word of what it is doing. */
import * as vscode from "vscode";
import { type Nexus, NexusError } from "../nexus";

/**
 * Resolves when the daemon answers; a request starts one that is stopped. Rejects with NexusError: `not-ready` where it
 * cannot be started, or takes longer than `limitMs`; `cancelled` where the user does not want to wait. `tell` is given
 * what it is doing.
 */
export async function whenReady(
  nexus: Nexus,
  limitMs: number,
  token?: vscode.CancellationToken,
  tell?: (doing: string) => void,
): Promise<void> {
  if (nexus.state === "ready") {
    return;
  }
  const source = new vscode.CancellationTokenSource();
  const cancelling = token?.onCancellationRequested(() => source.cancel());
  const timer = setTimeout(() => source.cancel(), limitMs);
  const say = (): void => {
    if (nexus.state !== "ready" && nexus.state !== "failed") {
      tell?.(nexus.detail);
    }
  };
  const listening = nexus.onDidChangeState(say);
  say();
  try {
    await nexus.request("nexus/status", {}, source.token);
  } catch (error) {
    throw source.token.isCancellationRequested && token?.isCancellationRequested !== true
      ? late(nexus, limitMs)
      : error;
  } finally {
    clearTimeout(timer);
    listening.dispose();
    cancelling?.dispose();
    source.dispose();
  }
}

function late(nexus: Nexus, limitMs: number): NexusError {
  const doing = nexus.detail === "" ? "" : ` (${nexus.detail})`;
  return new NexusError(`The Nexus server was not ready within ${limitMs / 1000} s${doing}. Try again.`, "not-ready");
}
