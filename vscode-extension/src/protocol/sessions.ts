/** Conversations, their turns, and what a compaction did. */
import type { TokenUsage } from "./context";

export interface Lost {
  paths: string[];
  commands: string[];
  identifiers: string[];
  errors: string[];
  instructions: string[];
  decisions: string[];
  counts: Record<string, number>;
}

/** What a compaction did. */
export interface Receipt {
  id: string;
  reason: string;
  summarizer: string;
  replacedMessages: number;
  tokensBefore: number;
  tokensAfter: number;
  created: string;
  lost: Lost;
  failures: string[];
  /** The model that wrote it, where the client names it. */
  model?: string;
}

export interface SessionPlace {
  session: string;
  thread: string;
}

export interface SessionInfo {
  session: string;
  thread: string;
  turns: number;
  messages: number;
  tokens: number;
  created: string;
  updated: string;
  agent?: string;
  forkedFrom?: string;
  /** The model that the user picked for it, and the most tokens that it takes. */
  model?: string;
  maxContextTokens?: number;
}

export interface SearchHit {
  workspaceFolder: string;
  session: string;
  turn: string;
  seq: number;
  position: number;
  role: string;
  snippet: string;
  created: string;
  /** The line of turns that it is in; a cleared conversation is at another one. */
  thread: string;
}

export interface Appended {
  session: string;
  turn: string;
  count: number;
  usage: TokenUsage;
  forked?: boolean;
  persists?: boolean;
}
