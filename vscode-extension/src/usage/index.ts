/**
 * What the next request of what the user looks at costs: the panel and the status bar each follow it.
 *
 * 1. The figures are those of the next message, with what the editor will attach to it (`nextTurn`). So they are
 *    asked for: those that come with a change of the folder's own conversation say nothing of that.
 * 2. They are asked for when something may have changed them.
 * 3. When something else is looked at, what is known is stale until the answer.
 * 4. An agent that is gone is not looked at any more.
 */
import * as vscode from "vscode";
import { isFolder, nameOf } from "../focus";
import { type Focus, type NextTurn, type Nexus, NexusError } from "../nexus";
import type { FolderParams, TokenUsage } from "../protocol";
import { type Asked, asked } from "./poller";

/** Whose figures they are. */
export interface Place {
  readonly folder: { readonly uri: string; readonly name: string };
  readonly session: string;
  readonly agent: string | undefined;
}

export interface Cost {
  readonly place: Place;
  readonly usage: TokenUsage;
}

export interface FocusedUsage extends vscode.Disposable {
  readonly cost: Asked<Cost>;
}

/** `tell` is called after every answer, failure and change that is known. Nothing is asked before `cost.look(true)`. */
export function focusedUsage(nexus: Nexus, focus: Focus, nextTurn: NextTurn, tell: () => void): FocusedUsage {
  const cost = asked<Cost>(async (signal) => {
    const place = placeOf(focus);
    if (!place) throw new Error("No folder is open.");
    try {
      const params = { ...scope(place), nextTurn: await nextTurn.params() };
      const usage = await withToken(signal, (token) => nexus.request("nexus/context/usage", params, token));
      return { place, usage };
    } catch (error) {
      const isGone = error instanceof NexusError && error.code === "unknown-agent";
      if (isGone && key === keyOf(place)) focus.setAgent(undefined);
      throw error;
    }
  }, tell);
  const here = (change: FolderParams) => isFolder(change.workspaceFolder, focus.folder);
  let key = keyOf(placeOf(focus));

  const listening = [
    nexus.onDidChangeState(() => {
      if (nexus.state === "ready") cost.renew();
    }),
    nexus.onDidChangeContext((change) => {
      if (placeOf(focus) && here(change)) cost.poke();
    }),
    nexus.onDidChangeSession((change) => {
      if (here(change) && change.session === focus.session) cost.poke();
    }),
    nexus.onDidChangeAgent((change) => {
      if (here(change) && change.agentId === focus.agent) cost.poke();
    }),
    nextTurn.onDidChange(() => cost.poke()),
    focus.onDidChange(() => {
      const now = keyOf(placeOf(focus));
      if (now !== key) cost.renew();
      key = now;
    }),
  ];
  return {
    cost,
    dispose() {
      cost.dispose();
      for (const one of listening) one.dispose();
    },
  };
}

export function placeOf(focus: Focus): Place | undefined {
  if (!focus.folder) return undefined;
  const folder = { uri: focus.folder.toString(), name: nameOf(focus.folder) };
  return { folder, session: focus.session, agent: focus.agent };
}

/** The same text for the same place. */
export function keyOf(place: Place | undefined): string {
  return place ? JSON.stringify([place.folder.uri, place.session, place.agent ?? null]) : "";
}

/** An agent has a conversation of its own: the daemon knows which. */
function scope({ folder, session, agent }: Place): FolderParams & { agent?: string; session?: string } {
  return { workspaceFolder: folder.uri, ...(agent === undefined ? { session } : { agent }) };
}

/** Asks with a token that is cancelled when `signal` is aborted. */
export async function withToken<T>(
  signal: AbortSignal,
  ask: (token: vscode.CancellationToken) => Promise<T>,
): Promise<T> {
  const source = new vscode.CancellationTokenSource();
  const cancel = () => source.cancel();
  signal.addEventListener("abort", cancel);
  try {
    return await ask(source.token);
  } finally {
    signal.removeEventListener("abort", cancel);
    source.dispose();
  }
}
