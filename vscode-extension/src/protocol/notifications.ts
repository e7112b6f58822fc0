/** What the daemon tells and asks by itself. */
import type { TokenUsage } from "./context";
import type { InFolder, Message } from "./shapes";

export type ContextReason =
  | "folder"
  | "config"
  | "model"
  | "mcp"
  | "instructions"
  | "layers"
  | "disk"
  | "session"
  | "compaction"
  | "tokens";

/** `usage` is what the session `main` costs now, whichever has changed. */
export interface ContextDidChange extends InFolder {
  revision: number;
  reason: ContextReason | (string & {});
  usage: TokenUsage;
  session?: string;
}

export interface SessionDidChange extends InFolder {
  session: string;
  reason:
    | "created"
    | "appended"
    | "compacted"
    | "undone"
    | "cleared"
    | "renamed"
    | "deleted"
    | "forked"
    | (string & {});
  by: "self" | "other";
  turn?: string;
  former?: string;
}

export interface AgentDidChange extends InFolder {
  reason: "spawned" | "disposed" | "message" | "changed" | (string & {});
  agentId: string;
}

/** The daemon asks the editor's model for a text. */
export interface ModelCompleteParams extends InFolder {
  session?: string;
  purpose: "compaction" | (string & {});
  messages: Message[];
  /** Tokens of the answer. */
  maxTokens?: number;
  model?: string;
}

export interface ModelCompleteResult {
  content: string;
  model?: string;
}
