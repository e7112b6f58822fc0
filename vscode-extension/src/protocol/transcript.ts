/** A conversation as people read it, page by page. */
import type { Receipt } from "./sessions";
import type { Counter } from "./shapes";

/** Numbers of messages: the first, and the one behind the last. */
export type Span = [first: number, end: number];

export interface TranscriptCall {
  name: string;
  arguments: string;
  id?: string;
}

export interface TranscriptMessage {
  position: number;
  role: "system" | "user" | "assistant" | "tool";
  text: string;
  tokens: number;
  exact?: boolean;
  name?: string;
  toolCallId?: string;
  calls?: TranscriptCall[];
  attachments?: string[];
  time?: string;
  omitted?: number;
}

export interface TranscriptTurn {
  turn: string;
  seq: number;
  type: "query" | "compaction" | "undo";
  created: string;
  first: number;
  count: number;
  messages: TranscriptMessage[];
  model?: string;
  compaction?: string;
  receipt?: Receipt;
  kept?: Span[];
  folded?: Span[];
  beside?: string[];
  leftOut?: string[];
}

/** A page of a conversation, and what of the whole is sent with the next request. */
export interface TranscriptPage {
  session: string;
  thread: string;
  messages: number;
  first: number;
  end: number;
  turns: TranscriptTurn[];
  counter: Counter;
  sent?: Span[];
  shortened?: number[];
  summary?: number;
  kept?: Span[];
  cleared?: boolean;
}
