/** What an answer's metadata keeps, and what is suggested after it. No VS Code here. */
import type { Mark } from "./threadSession";

export interface Told {
  mark?: Mark;
  /** What the answer was. */
  kind: "turn" | "context" | "compact" | "fork" | "agent" | "init" | "none" | "failed";
  /** How full the conversation is, in percent, as the daemon said. */
  percent?: number;
  /** The context was too long for the model. */
  overflow?: boolean;
  /** The answer is not whole. */
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
export function suggestions(told: Told | undefined): Suggestion[] {
  switch (told?.kind) {
    case "turn":
      return [
        ...(told.partial === true ? [GO_ON] : []),
        ...(told.overflow === true || (told.percent ?? 0) >= FULL ? [COMPACT] : []),
        SHOW,
      ];
    case "context":
      return (told.percent ?? 0) >= FULL ? [COMPACT, FORK] : [FORK];
    case "compact":
    case "fork":
    case "agent":
    case "init":
      return [SHOW];
    case "failed":
      return told.overflow === true ? [COMPACT, SHOW] : [];
    case "none":
      return [INIT];
    default:
      return []; // the editor could not even ask
  }
}

/** The metadata of a result, as it was written by `metadataOf`; undefined of anything else. */
export function toldOf(metadata: { readonly [key: string]: unknown } | undefined): Told | undefined {
  const told = metadata?.nexus;
  return typeof told === "object" && told !== null && "kind" in told ? (told as Told) : undefined;
}

export function metadataOf(told: Told): { nexus: Told } {
  return { nexus: told };
}

/** The newest mark among results, the newest last. */
export function markOf(results: readonly ({ readonly [key: string]: unknown } | undefined)[]): Mark | undefined {
  for (const metadata of [...results].reverse()) {
    const mark = toldOf(metadata)?.mark;
    if (mark !== undefined) {
      return mark;
    }
  }
  return undefined;
}
