/**
 * The cost of the next request in the focused conversation, for the panel and the status bar.
 *
 * 1. The figures include what the editor will attach to the next message (`nextTurn`). `nexus/context/didChange` does
 *    not, so they are requested.
 * 2. They are requested again when something may have changed them.
 * 3. When the focus moves, the last figures are stale until the answer.
 * 4. An agent that has ended loses the focus, and so does an assistant that the server does not know.
 * 5. Of an assistant it is the window of its session that runs in the folder; without one, what the folder's
 *    files cost in each of its requests.
 */
import * as vscode from "vscode";
import { isFolder, nameOf } from "../focus";
import { type Focus, type NextTurn, type Nexus, NexusError } from "../nexus";
import type { AssistantSessionResult, FolderParams, Requests, TokenUsage } from "../protocol";
import { makePoller, type Poller } from "./poller";

/** The folder, and the conversation, agent or other assistant in it that figures are for. */
export interface UsageScope {
  readonly folder: { readonly uri: string; readonly name: string };
  readonly session: string;
  readonly agent: string | undefined;
  readonly assistant: string | undefined;
}

/** Assistants whose sessions the server can read. */
const WITH_SESSIONS: ReadonlySet<string> = new Set(["claude-code", "codex", "opencode", "gemini"]);

export interface Cost {
  readonly scope: UsageScope;
  readonly usage: TokenUsage;
  /** Of another assistant's session that runs here. */
  readonly report?: AssistantSessionResult;
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
      return await withToken(signal, (token) =>
        readCost(scope, nextTurn, (...asked) => nexus.request(...asked, token)),
      );
    } catch (error) {
      const code = error instanceof NexusError && key === keyOf(scope) ? error.code : undefined;
      if (code === "unknown-agent") focus.setAgent(undefined);
      if (code === "unknown-assistant") focus.pickView(undefined);
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
    nexus.onDidChangeAssistant((change) => {
      if (here(change) && change.assistant === focus.assistant) cost.poke();
    }),
    nexus.onDidChangeServer((change) => {
      if (here(change)) cost.poke();
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

type Ask = <M extends keyof Requests>(method: M, params: Requests[M]["params"]) => Promise<Requests[M]["result"]>;

async function readCost(scope: UsageScope, nextTurn: NextTurn, ask: Ask): Promise<Cost> {
  const report = await readLiveReport(scope, ask);
  if (report?.session.usage) return { scope, usage: report.session.usage, report };
  return { scope, usage: await ask("nexus/context/usage", await paramsOf(scope, nextTurn)) };
}

/** The session of the viewed assistant that went on last; none where none runs. */
async function readLiveReport(scope: UsageScope, ask: Ask): Promise<AssistantSessionResult | undefined> {
  const { folder, assistant } = scope;
  if (assistant === undefined || !WITH_SESSIONS.has(assistant)) return undefined;
  const place = { workspaceFolder: folder.uri, assistant };
  const { sessions } = await ask("nexus/assistant/sessions", { ...place, live: true });
  const running = sessions.find(({ parent }) => parent === undefined);
  return running && ask("nexus/assistant/session", { ...place, id: running.id });
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
