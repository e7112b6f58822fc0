/**
 * The cost of the next request in the focused conversation, for the panel and the status bar.
 *
 * 1. The figures include what the editor will attach to the next message (`nextTurn`). `nexus/context/didChange` does
 *    not, so they are requested.
 * 2. They are requested again when something may have changed them.
 * 3. When the focus moves, the last figures are stale until the answer.
 * 4. An agent that has ended loses the focus, and so does an assistant that the server does not know.
 * 5. Of another assistant it is the cost of the folder's files in each of its requests.
 */
import * as vscode from "vscode";
import { isFolder, nameOf } from "../focus";
import { type Focus, type NextTurn, type Nexus, NexusError } from "../nexus";
import type { FolderParams, Requests, TokenUsage } from "../protocol";
import { makePoller, type Poller } from "./poller";

/** The folder, and the conversation, agent or other assistant in it that figures are for. */
export interface UsageScope {
  readonly folder: { readonly uri: string; readonly name: string };
  readonly session: string;
  readonly agent: string | undefined;
  readonly assistant: string | undefined;
}

export interface Cost {
  readonly scope: UsageScope;
  readonly usage: TokenUsage;
}

export interface FocusedUsage extends vscode.Disposable {
  readonly cost: Poller<Cost>;
}

/** `notify` is called after every answer and failure. Nothing is requested before `cost.setVisible(true)`. */
export function focusedUsage(nexus: Nexus, focus: Focus, nextTurn: NextTurn, notify: () => void): FocusedUsage {
  const cost = makePoller<Cost>(async (signal) => {
    const scope = scopeOf(focus);
    if (!scope) throw new Error("No folder is open.");
    try {
      const params = await paramsOf(scope, nextTurn);
      const usage = await withToken(signal, (token) => nexus.request("nexus/context/usage", params, token));
      return { scope, usage };
    } catch (error) {
      const code = error instanceof NexusError && key === keyOf(scope) ? error.code : undefined;
      if (code === "unknown-agent") focus.setAgent(undefined);
      if (code === "unknown-assistant") focus.setAssistant(undefined);
      throw error;
    }
  }, notify);
  const here = (change: FolderParams) => isFolder(change.workspaceFolder, focus.folder);
  let key = keyOf(scopeOf(focus));

  const listening = [
    nexus.onDidChangeState(() => {
      if (nexus.state === "ready") cost.renew();
    }),
    nexus.onDidChangeContext((change) => {
      if (scopeOf(focus) && here(change)) cost.poke();
    }),
    nexus.onDidChangeSession((change) => {
      if (here(change) && change.session === focus.session) cost.poke();
    }),
    nexus.onDidChangeAgent((change) => {
      if (here(change) && change.agentId === focus.agent) cost.poke();
    }),
    nextTurn.onDidChange(() => cost.poke()),
    focus.onDidChange(() => {
      const now = keyOf(scopeOf(focus));
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

export function scopeOf(focus: Focus): UsageScope | undefined {
  if (!focus.folder) return undefined;
  const folder = { uri: focus.folder.toString(), name: nameOf(focus.folder) };
  return { folder, session: focus.session, agent: focus.agent, assistant: focus.assistant };
}

/** The same text for the same scope. */
export function keyOf(scope: UsageScope | undefined): string {
  return scope ? JSON.stringify([scope.folder.uri, scope.session, scope.agent ?? null, scope.assistant ?? null]) : "";
}

/** An agent has a conversation of its own: the daemon knows which. */
async function paramsOf(scope: UsageScope, nextTurn: NextTurn): Promise<Requests["nexus/context/usage"]["params"]> {
  const { folder, session, agent, assistant } = scope;
  if (assistant !== undefined) return { workspaceFolder: folder.uri, assistant };
  const who = agent === undefined ? { session } : { agent };
  return { workspaceFolder: folder.uri, ...who, nextTurn: await nextTurn.params() };
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
