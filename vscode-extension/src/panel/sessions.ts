/**
 * The conversations of a folder as a list, those that changed last first.
 *
 * 1. The one that is looked at is marked, and always shown.
 * 2. Of many, a page; the last node shows the next one.
 */
import type { SessionInfo } from "../protocol";
import type { Node } from "./node";
import { count, plain, plural, tokensOf, when } from "./wording";

/** Conversations that show at first, and that each "show more" adds. */
export const PAGE = 100;

export interface SessionsGiven {
  readonly sessions: readonly SessionInfo[];
  readonly folder: string;
  readonly current: string;
  /** How many to show. */
  readonly shown: number;
  readonly now: Date;
}

export function sessionNodes(given: SessionsGiven): Node[] {
  const first = given.sessions.slice(0, given.shown);
  const current = given.sessions.find((one) => one.session === given.current);
  const shown = current && !first.includes(current) ? [current, ...first] : first;
  const nodes = shown.map((one) => sessionNode(one, given));
  const rest = given.sessions.length - shown.length;
  if (rest <= 0) return nodes;
  const label = `Show ${count(Math.min(PAGE, rest))} more`;
  const more: Node = {
    id: "more",
    label,
    description: `${count(shown.length)} of ${count(given.sessions.length)}`,
    spoken: `${label}, ${shown.length} of ${given.sessions.length} are shown`,
    icon: { name: "ellipsis" },
    context: "more",
    command: "nexus.panel.moreSessions",
  };
  return [...nodes, more];
}

function sessionNode(one: SessionInfo, given: SessionsGiven): Node {
  const isCurrent = one.session === given.current;
  const isExact = one.exact !== false;
  const changed = when(one.updated, given.now);
  const parts = [
    ...(isCurrent ? ["current"] : []),
    tokensOf(one.tokens, isExact),
    plural(one.messages, "message"),
    ...(changed ? [changed] : []),
  ];
  return {
    id: `session:${one.session}`,
    label: one.session,
    description: parts.join(" · "),
    figure: `${isExact ? "" : "≈ "}${count(one.tokens)}`,
    tooltip: [
      `**${plain(one.session)}**${isCurrent ? " (current)" : ""}`,
      `${plural(one.messages, "message")} in ${plural(one.turns, "turn")}, compacted ones among them`,
      `${tokensOf(one.tokens, isExact)}${isExact ? "" : ", as messages were counted when they came"}`,
      ...(one.forkedFrom === undefined ? [] : [`forked from ${plain(one.forkedFrom)}`]),
      ...(one.agent === undefined ? [] : [`of the agent ${plain(one.agent)}`]),
      `begun ${plain(longTime(one.created))}, changed ${plain(longTime(one.updated))}`,
    ].join("\n\n"),
    spoken: [
      one.session,
      ...parts,
      ...(one.forkedFrom === undefined ? [] : [`forked from ${one.forkedFrom}`]),
      ...(one.agent === undefined ? [] : [`of the agent ${one.agent}`]),
    ].join(", "),
    icon: isCurrent
      ? { name: "pass-filled", colour: "charts.green" }
      : { name: one.agent !== undefined ? "robot" : one.forkedFrom !== undefined ? "repo-forked" : "comment" },
    context: isCurrent ? "session.current" : "session.other",
    command: "nexus.panel.openConversation",
    subject: { folder: given.folder, session: one.session },
  };
}

function longTime(iso: string): string {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? iso : time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
