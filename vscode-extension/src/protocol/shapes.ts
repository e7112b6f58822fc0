/** Shapes that several requests speak of. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

export interface Location {
  uri: string;
  range: Range;
}

export interface ToolCall {
  id: string;
  name: string;
  arguments?: Json;
}

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content?: string | Json[] | null;
  toolCalls?: ToolCall[];
  toolCallId?: string;
  name?: string;
  meta?: Json;
  timestamp?: string | number;
  tokens?: number;
}

/** How changes of a folder's files on disk are noticed. */
export interface Freshness {
  state: "watched" | "polled" | "unknown";
  /** Of `unknown`: since when, in UTC. */
  since?: string;
  /** Of `polled`: the pause between two looks. */
  everySeconds?: number;
  reasons?: string[];
}

export interface Problem extends Location {
  /** 1 error, 2 warning, 3 information, 4 hint. */
  severity: 1 | 2 | 3 | 4;
  code: string;
  message: string;
  fix?: { title: string; edits: { range: Range; newText: string }[] };
}

export interface Counter {
  name: string;
  exact: boolean;
}

export interface InFolder {
  workspaceFolder: string;
}

export interface InSession extends InFolder {
  session?: string;
}
