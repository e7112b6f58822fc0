/** What the parts of the extension know of each other: the daemon, and what the user looks at. */
import type * as vscode from "vscode";
import type {
  AgentDidChange,
  AssistantDidChange,
  ChatItem,
  ContextDidChange,
  McpDidChange,
  NextTurnParams,
  Questions,
  Requests,
  SessionDidChange,
  ViewInfo,
  ViewListResult,
} from "./protocol";
import type { Obstacle, RemedyId } from "./server/remedies";

export type ServerState = "stopped" | "finding" | "installing" | "starting" | "ready" | "failed";

/** Whether a server is being looked for, installed or started: figures of the one before may stay until it answers. */
export function isOnItsWay(state: ServerState): boolean {
  return state === "finding" || state === "installing" || state === "starting";
}

/** Answers a question of the daemon. */
export type Answerer<M extends keyof Questions> = (
  params: Questions[M]["params"],
  token: vscode.CancellationToken,
) => Promise<Questions[M]["result"]>;

/** Is given the parts of a turn as they come. */
export type ShowItems = (items: readonly ChatItem[]) => void;

/** The daemon as the parts of the extension see it. */
export interface Nexus {
  readonly state: ServerState;
  /** One line for people: why it failed, what it is doing. */
  readonly detail: string;
  /** What keeps the server from running, where `detail` says why; none while it runs or is on its way. */
  readonly obstacle: Obstacle | undefined;
  readonly onDidChangeState: vscode.Event<ServerState>;
  readonly onDidChangeContext: vscode.Event<ContextDidChange>;
  readonly onDidChangeSession: vscode.Event<SessionDidChange>;
  readonly onDidChangeAgent: vscode.Event<AgentDidChange>;
  /** A session of another program in a folder appeared or went on. */
  readonly onDidChangeAssistant: vscode.Event<AssistantDidChange>;
  /** An MCP server of a folder has another state, or offers something else. */
  readonly onDidChangeServer: vscode.Event<McpDidChange>;
  /**
   * Rejects with NexusError (message says what to do; `code` is the daemon's data.code) and when not ready. What
   * `nexus/chat/send` streams goes to `show`.
   */
  request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    token?: vscode.CancellationToken,
    show?: ShowItems,
  ): Promise<Requests[M]["result"]>;
  /** Who answers a question of the daemon; one at a time. */
  answer<M extends keyof Questions>(method: M, answerer: Answerer<M>): vscode.Disposable;
  restart(): Promise<void>;
}

/** The name of the view of Nexus's own chat. */
export const NEXUS = "nexus";

/** Where no other view is known. */
export const NEXUS_ALONE: ViewListResult = {
  views: [{ name: NEXUS, title: "Nexus", reason: "", inUse: true }],
  chosen: NEXUS,
};

/** The views of folders, and which of them is chosen by itself. */
export interface Views {
  readonly onDidChange: vscode.Event<void>;
  /** None while the server has not answered. */
  of(folder: vscode.Uri): ViewListResult | undefined;
}

/** What the user looks at: panel, status bar, chat and commands share it. */
export interface Focus {
  /** Of the active editor, else the last one, else the first workspace folder. */
  readonly folder: vscode.Uri | undefined;
  /** "main" unless chosen; kept per folder in workspaceState. */
  readonly session: string;
  /** "View as" a live agent. */
  readonly agent: string | undefined;
  /** The views of the folder, those in use first; none while they are not known. */
  readonly views: readonly ViewInfo[];
  /** The view of the folder: the user's pick, kept per folder, else the one that chooses itself. None until known. */
  readonly view: ViewInfo | undefined;
  /** Whether the user picked the view. */
  readonly isPicked: boolean;
  /** The assistant whose context is looked at, such as `claude-code`; none for Nexus, and while an agent is viewed. */
  readonly assistant: string | undefined;
  readonly onDidChange: vscode.Event<void>;
  setFolder(folder: vscode.Uri): void;
  setSession(session: string): void;
  /** The user picked this conversation, though it may be in focus already: the next new chat goes on in it. */
  pickSession(session: string): void;
  /** Whether the conversation in focus was picked since this was last called for it. */
  takePick(): boolean;
  /** Without an agent: back to the folder's view. */
  setAgent(agent: string | undefined): void;
  /** Ends the look at an agent. Without a name, the view chooses itself again. */
  pickView(name: string | undefined): void;
}

/** What is known of the next chat message before it is written. */
export interface NextTurn {
  readonly onDidChange: vscode.Event<void>;
  /** For `nexus/context/usage`. */
  params(): Promise<NextTurnParams>;
  /** The instruction files that the editor attached to a message; `isPlain`: the user attached nothing to it. */
  learn(attached: readonly vscode.Uri[], isPlain: boolean): Promise<void>;
}

/** The daemon refused: `code` is its `data.code`, or `not-ready` and `cancelled` of the extension itself. */
export class NexusError extends Error {
  constructor(
    message: string,
    readonly code: string,
    /** What the user can do, where that is known; the best first. */
    readonly remedies: readonly RemedyId[] = [],
  ) {
    super(message);
    this.name = "NexusError";
  }
}
