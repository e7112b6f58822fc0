/**
 * What the panel knows of the daemon: asked for views that are visible, renewed by notifications.
 *
 * 1. Each part is asked for by itself: a failure of one leaves the others as they are.
 * 2. What is looked at follows what becomes of it, whoever does that: a conversation that is renamed or deleted, an
 *    agent that ends.
 * 3. Another folder, conversation or agent: the old figures stay until the new ones are there.
 */
import * as vscode from "vscode";
import { isFolder, MAIN } from "../focus";
import type { Focus, NextTurn, Nexus } from "../nexus";
import type {
  AgentDidChange,
  AgentInfo,
  AssistantInfo,
  AssistantReadersResult,
  AssistantSessionsResult,
  ContextDidChange,
  ConversationListResult,
  EffectiveResult,
  FolderParams,
  LayersResult,
  Preview,
  Requests,
  ServersResult,
  SessionDidChange,
  SessionInfo,
} from "../protocol";
import { type Cost, focusedUsage, keyOf, scopeOf, type UsageScope, withToken } from "../usage";
import { listAgents } from "../usage/nextUsage";
import { makePoller, type Poller } from "../usage/poller";
import { ASSISTANT_FILES } from "../views";
import type { LastCompaction } from "./window";
import { when } from "./wording";

export type View = "window" | "rows" | "layers" | "sessions" | "agents";

interface Parts {
  usage: Cost;
  layers: LayersResult;
  preview: Preview;
  config: EffectiveResult;
  /** The folder's MCP servers and their states. */
  servers: ServersResult;
  sessions: readonly SessionInfo[];
  /** Those of all programs, kept or not; an older server does not know the request. */
  conversations: ConversationListResult;
  agents: readonly AgentInfo[];
  assistants: readonly AssistantInfo[];
  readers: AssistantReadersResult;
  live: AssistantSessionsResult;
}
type Part = keyof Parts;

export interface Feed extends vscode.Disposable {
  readonly nexus: Nexus;
  readonly focus: Pick<Focus, "view" | "views">;
  readonly place: UsageScope | undefined;
  readonly compaction: LastCompaction | undefined;
  get<P extends Part>(part: P): Poller<Parts[P]>;
  /** Ask for everything again. */
  refresh(): void;
  look(view: View, visible: boolean): void;
}

/** What each view is made of, the part that it waits for first. */
export const NEEDS: Readonly<Record<View, readonly Part[]>> = {
  window: ["usage", "layers", "config", "servers", "assistants", "readers", "live"],
  rows: ["usage", "config"],
  layers: ["layers", "config", "servers", "preview"],
  sessions: ["sessions", "conversations", "live"],
  agents: ["agents"],
};
const ALL = Object.keys(NEEDS) as View[];

/** Conversations of the list of all programs; its sum is of all. */
const MOST_CONVERSATIONS = 1_000;

/** What only the view of an assistant needs. */
const OF_ASSISTANTS: ReadonlySet<Part> = new Set<Part>(["assistants", "readers"]);

/** What only Nexus's own view needs. */
const OF_NEXUS: ReadonlySet<Part> = new Set<Part>(["servers"]);

/** Changes that leave the settings as they are: of several at once, the daemon names one that does not. */
const TEXT: ReadonlySet<string> = new Set(["instructions", "tokens"]);

/** A document that is typed in: the server counts unsaved text as saved. */
const INSTRUCTIONS = /\.(?:md|mdc)$/;

/** `show` is called with the views whose parts have changed. */
export function feed(nexus: Nexus, focus: Focus, nextTurn: NextTurn, show: (views: readonly View[]) => void): Feed {
  const looking = new Set<View>();
  const compactions = new Map<string, LastCompaction>();
  let shownPlace = keyOf(scopeOf(focus));

  const tell = (part: Part) => {
    show(ALL.filter((view) => NEEDS[view].includes(part)));
  };
  const costs = focusedUsage(nexus, focus, nextTurn, () => tell("usage"));
  const parts = { usage: costs.cost, ...makeParts(nexus, focus, nextTurn, tell) } satisfies {
    [P in Part]: Poller<Parts[P]>;
  };
  const every = Object.values(parts) as Poller<unknown>[];
  const poke = (...names: Part[]) => {
    for (const name of names) parts[name].poke();
  };

  function look(): void {
    const answers = nexus.state === "ready" && focus.view !== undefined;
    for (const part of Object.keys(parts) as Part[]) {
      const needed = [...looking].some((view) => NEEDS[view].includes(part));
      const viewing = part === "agents" && focus.agent !== undefined && looking.has("window"); // its conversation
      const unused = (focus.assistant === undefined ? OF_ASSISTANTS : OF_NEXUS).has(part);
      parts[part].setVisible(answers && ((needed && !unused) || viewing));
    }
  }

  function contextChanged(change: ContextDidChange): void {
    const place = scopeOf(focus);
    if (!place || !isFolder(change.workspaceFolder, focus.folder)) return;
    if (change.reason === "session" || change.reason === "compaction") return;
    poke("layers", "preview", "readers");
    if (change.reason !== "tokens") poke("agents");
    if (change.reason !== "instructions") poke("servers"); // a model counts the tools its own way
    if (!TEXT.has(change.reason)) poke("config", "live"); // a setting turns conversations of programs off
  }

  function sessionChanged(change: SessionDidChange): void {
    const place = scopeOf(focus);
    if (!place || !isFolder(change.workspaceFolder, focus.folder)) return;
    poke("sessions", "conversations", "agents");
    if (change.reason === "renamed" && change.former === place.session) focus.setSession(change.session);
    if (change.reason === "deleted" && change.session === place.session) focus.setSession(MAIN);
    const key = conversationKey(place, change.session);
    if (change.reason === "compacted" || change.reason === "undone") {
      const time = when(new Date().toISOString(), new Date());
      compactions.set(key, { undone: change.reason === "undone", time });
    } else if (change.reason === "cleared" || change.reason === "deleted") compactions.delete(key);
  }

  /** Of the conversation that is shown: an agent's own, where one is viewed. */
  function lastCompaction(): LastCompaction | undefined {
    const place = scopeOf(focus);
    if (!place) return undefined;
    const { agent } = place;
    if (agent === undefined) return compactions.get(conversationKey(place, place.session));
    const own = parts.agents.value?.find((one) => one.agentId === agent)?.session;
    return own === undefined ? undefined : compactions.get(conversationKey(place, own));
  }

  function agentChanged(change: AgentDidChange): void {
    const place = scopeOf(focus);
    if (!place || !isFolder(change.workspaceFolder, focus.folder)) return;
    poke("agents");
    if (change.agentId !== place.agent) return;
    if (change.reason === "disposed") focus.setAgent(undefined);
    else if (change.reason !== "message") poke("layers", "preview", "config", "servers");
  }

  function focusChanged(): void {
    const key = keyOf(scopeOf(focus));
    if (key !== shownPlace) for (const part of every) part.renew();
    shownPlace = key;
    look();
    show(ALL);
  }

  /** What an assistant reads may have changed. */
  function fileChanged(): void {
    if (focus.assistant !== undefined) poke("usage", "layers", "preview", "readers");
  }

  const assistantFiles = vscode.workspace.createFileSystemWatcher(ASSISTANT_FILES);
  const listening = [
    assistantFiles,
    assistantFiles.onDidChange(fileChanged),
    assistantFiles.onDidCreate(fileChanged),
    assistantFiles.onDidDelete(fileChanged),
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (document.isDirty && INSTRUCTIONS.test(document.uri.path)) fileChanged();
    }),
    nexus.onDidChangeState(() => {
      for (const part of every) if (nexus.state === "ready") part.renew();
      look();
      show(ALL);
    }),
    nexus.onDidChangeContext(contextChanged),
    nexus.onDidChangeSession(sessionChanged),
    nexus.onDidChangeAgent(agentChanged),
    nexus.onDidChangeAssistant((change) => {
      if (isFolder(change.workspaceFolder, focus.folder)) poke("live", "conversations");
    }),
    nexus.onDidChangeServer((change) => {
      if (isFolder(change.workspaceFolder, focus.folder)) poke("servers");
    }),
    nextTurn.onDidChange(() => poke("agents")),
    focus.onDidChange(focusChanged),
  ];

  return {
    nexus,
    focus,
    get place() {
      return scopeOf(focus);
    },
    get compaction() {
      return lastCompaction();
    },
    get: <P extends Part>(part: P) => parts[part] as Poller<Parts[P]>,
    refresh() {
      for (const part of every) part.renew();
    },
    look(view, visible) {
      if (visible) looking.add(view);
      else looking.delete(view);
      look();
    },
    dispose() {
      for (const part of every) part.dispose();
      for (const one of [...listening, costs]) one.dispose();
    },
  };
}

function makeParts(nexus: Nexus, focus: Focus, nextTurn: NextTurn, tell: (part: Part) => void) {
  function part<P extends Part>(name: P, ask: (place: UsageScope, request: Request) => Promise<Parts[P]>) {
    const run = async (signal: AbortSignal) => {
      const place = scopeOf(focus);
      if (!place) throw new Error("No folder is open.");
      return withToken(signal, (token) => ask(place, (method, params) => nexus.request(method, params, token)));
    };
    return makePoller<Parts[P]>(run, () => tell(name));
  }
  return {
    layers: part("layers", (place, request) => request("nexus/context/layers", asViewed(place))),
    preview: part("preview", (place, request) => request("nexus/context/preview", asViewed(place))),
    config: part("config", (place, request) => request("nexus/config/effective", inFolder(place))),
    servers: part("servers", (place, request) => request("nexus/mcp/servers", inFolder(place))),
    sessions: part("sessions", async (place, request) => (await request("nexus/session/list", folder(place))).sessions),
    conversations: part("conversations", (place, request) =>
      request("nexus/conversation/list", { ...folder(place), limit: MOST_CONVERSATIONS }),
    ),
    agents: part("agents", (place, request) => listAgents({ request }, nextTurn, place.folder.uri)),
    assistants: part("assistants", async (_, request) => (await request("nexus/assistant/list", {})).assistants),
    readers: part("readers", (place, request) => request("nexus/assistant/readers", folder(place))),
    live: part("live", (place, request) => request("nexus/assistant/sessions", { ...folder(place), live: true })),
  };
}

type Request = <M extends keyof Requests>(method: M, params: Requests[M]["params"]) => Promise<Requests[M]["result"]>;

function conversationKey({ folder: { uri } }: UsageScope, session: string): string {
  return JSON.stringify([uri, session]);
}

function folder(place: UsageScope): FolderParams {
  return { workspaceFolder: place.folder.uri };
}

function inFolder(place: UsageScope): FolderParams & { agent?: string } {
  return { ...folder(place), ...(place.agent === undefined ? {} : { agent: place.agent }) };
}

/** As the user views the folder: as an agent of it, or as another assistant. */
function asViewed(place: UsageScope): FolderParams & { agent?: string; assistant?: string } {
  return place.assistant === undefined ? inFolder(place) : { ...folder(place), assistant: place.assistant };
}
