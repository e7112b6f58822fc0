/** The metadata of an answer in the chat, and the follow-ups that it suggests. No VS Code here. */
import type { Mark } from "./threadSession";

export interface AnswerMetadata {
  mark?: Mark;
  /** The kind of answer. */
  kind: "turn" | "context" | "compact" | "fork" | "agent" | "skill" | "prompt" | "init" | "none" | "failed";
  /** How full the conversation is, in percent, as the daemon counted. */
  percent?: number;
  /** The context was too long for the model. */
  overflow?: boolean;
  /** The answer is incomplete. */
  partial?: boolean;
  /** Agent whose context the turn was. */
  agent?: string;
}

export interface Suggestion {
  prompt: string;
  label: string;
  command?: string;
}

const SHOW: Suggestion = { prompt: "", label: "Show what is sent, with tokens", command: "context" };
const COMPACT: Suggestion = { prompt: "", label: "Compact this conversation", command: "compact" };
const FORK: Suggestion = { prompt: "", label: "Fork this conversation", command: "fork" };
const INIT: Suggestion = { prompt: "", label: "Create .nexus3 in this folder", command: "init" };
const GO_ON: Suggestion = { prompt: "Go on.", label: "Go on with the answer", command: "" };

/** Percent from which compacting is suggested. */
const FULL = 60;

/** Follow-ups of an answer, the most useful first. */
export function suggestions(answer: AnswerMetadata | undefined): Suggestion[] {
  switch (answer?.kind) {
    case "turn":
      return [
        ...(answer.partial === true ? [GO_ON] : []),
        ...(answer.overflow === true || (answer.percent ?? 0) >= FULL ? [COMPACT] : []),
        SHOW,
      ];
    case "context":
      return (answer.percent ?? 0) >= FULL ? [COMPACT, FORK] : [FORK];
    case "compact":
    case "fork":
    case "agent":
    case "skill":
    case "prompt":
    case "init":
      return [SHOW];
    case "failed":
      return answer.overflow === true ? [COMPACT, SHOW] : [];
    case "none":
      return [INIT];
    default:
      return []; // the editor could not even ask
  }
}

/** The metadata that `metadataOf` wrote; undefined for anything else. */
export function readAnswer(metadata: { readonly [key: string]: unknown } | undefined): AnswerMetadata | undefined {
  const answer = metadata?.nexus;
  return typeof answer === "object" && answer !== null && "kind" in answer ? (answer as AnswerMetadata) : undefined;
}

export function metadataOf(answer: AnswerMetadata): { nexus: AnswerMetadata } {
  return { nexus: answer };
}

/** The newest mark among results, the newest last. */
export function markOf(results: readonly ({ readonly [key: string]: unknown } | undefined)[]): Mark | undefined {
  for (const metadata of [...results].reverse()) {
    const mark = readAnswer(metadata)?.mark;
    if (mark !== undefined) {
      return mark;
    }
  }
  return undefined;
}
