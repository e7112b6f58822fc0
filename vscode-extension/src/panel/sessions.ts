/**
 * The conversations of a folder as a list, the last turn first: its own, and those of all programs, kept or not.
 *
 * 1. The one that is looked at is marked, and always shown.
 * 2. Of many, a page; one node shows the next one. The last node is the sum.
 * 3. A conversation that is kept in the folder has all that a menu does with it. Another one can be read.
 * 4. A session that runs has a row of its own above the list, so it has none here until it is kept.
 * 5. Of an older server there are the folder's own alone, those that changed last first.
 */
import type { AssistantSessionInfo, ConversationInfo, ConversationListResult, SessionInfo } from "../protocol";
import type { Node } from "./node";
import { count, directoryOf, dollars, pathOf, plain, plural, tokensOf, when } from "./wording";

/** Conversations that show at first, and that each "show more" adds. */
export const PAGE = 100;

export interface SessionsGiven {
  readonly sessions: readonly SessionInfo[];
  readonly conversations?: ConversationListResult | undefined;
  /** Sessions of programs that run now. */
  readonly running?: readonly AssistantSessionInfo[];
  readonly folder: string;
  readonly home?: string;
  readonly current: string;
  /** How many to show. */
  readonly shown: number;
  readonly now: Date;
}

/** A row: what the folder keeps of a conversation, what all programs say of it, or both. */
interface Row {
  readonly session?: SessionInfo | undefined;
  readonly conversation?: ConversationInfo | undefined;
}

export function sessionNodes(given: SessionsGiven): Node[] {
  const rows = rowsOf(given);
  const first = rows.slice(0, given.shown);
  const current = rows.find(({ session }) => session?.session === given.current);
  const shown = current && !first.includes(current) ? [current, ...first] : first;
  const nodes = shown.flatMap((row) => nodeOf(row, given));
  const rest = rows.length - shown.length;
  return [...nodes, ...(rest > 0 ? [moreNode(rest, shown.length, rows.length)] : []), ...sumNodes(given.conversations)];
}

function moreNode(rest: number, shown: number, all: number): Node {
  const label = `Show ${count(Math.min(PAGE, rest))} more`;
  return {
    id: "more",
    label,
    description: `${count(shown)} of ${count(all)}`,
    spoken: `${label}, ${shown} of ${all} are shown`,
    icon: { name: "ellipsis" },
    context: "more",
    command: "nexus.panel.moreSessions",
  };
}

/** All in their order; what the list of all does not have, as it is older or shortened, keeps its place among the own. */
function rowsOf({ sessions, conversations, running = [] }: SessionsGiven): Row[] {
  if (!conversations) return sessions.map((session) => ({ session }));
  const own = new Map(sessions.map((session) => [session.thread, session]));
  const live = new Set(running.filter((one) => one.parent === undefined).map((one) => keyOf(one.assistant, one.id)));
  const listed = conversations.conversations.flatMap((conversation): Row[] => {
    const { thread, program, id } = conversation;
    const session = thread === undefined ? undefined : own.get(thread);
    if (session) own.delete(session.thread);
    else if (!conversation.kept && live.has(keyOf(program, id))) return [];
    return [{ session, conversation }];
  });
  const rest = [...own.values()].map((session) => ({ session }));
  return rest.length === 0 ? listed : [...listed, ...rest].sort((one, other) => timeOf(other) - timeOf(one));
}

function keyOf(program: string, id: string): string {
  return `${program}:${id}`;
}

function timeOf({ session, conversation }: Row): number {
  const time = Date.parse(conversation?.lastTurn ?? session?.lastTurn ?? session?.updated ?? "");
  return Number.isNaN(time) ? 0 : time;
}

function nodeOf({ session, conversation }: Row, given: SessionsGiven): Node[] {
  if (session) return [sessionNode(session, conversation, given)];
  return conversation ? [conversationNode(conversation, given)] : [];
}

function sessionNode(one: SessionInfo, conversation: ConversationInfo | undefined, given: SessionsGiven): Node {
  const isCurrent = one.session === given.current;
  const isExact = one.exact !== false;
  const changed = when(conversation?.lastTurn ?? one.updated, given.now);
  const cost = conversation && costText(conversation);
  const parts = [
    ...(isCurrent ? ["current"] : []),
    tokensOf(one.tokens, isExact),
    plural(one.messages, "message"),
    ...(cost ? [cost] : []),
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
      ...(cost ? [`cost: ${cost}`] : []),
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

/** A conversation that is not kept, or in another folder. */
export function conversationNode(
  one: ConversationInfo,
  { folder, home, now }: Pick<SessionsGiven, "folder" | "home" | "now">,
): Node {
  const label = one.title ?? one.id;
  const tokens = one.tokens === undefined ? [] : [tokensOf(one.tokens, !one.estimated)];
  const cost = costText(one);
  const place = one.folder === undefined ? [] : placeOf(one.folder, folder, home);
  const kept = one.kept ? "kept" : "not kept";
  const last = when(one.lastTurn, now);
  const parts = [one.programTitle, ...place, ...tokens, ...(cost ? [cost] : []), kept, ...(last ? [last] : [])];
  const fork = one.forkOf === undefined ? [] : [`forked from ${one.forkOf}`];
  const parent = one.parent === undefined ? [] : [`a sub-agent of ${one.parent}`];
  return {
    id: `conversation:${keyOf(one.program, one.id)}`,
    label,
    description: parts.join(" · "),
    ...(one.tokens === undefined ? {} : { figure: `${one.estimated ? "≈ " : ""}${count(one.tokens)}` }),
    tooltip: [
      `**${plain(label)}**`,
      plain(`${one.programTitle}, ${kept}${one.kept ? "" : ": its program's file is read"}`),
      ...[...place, ...tokens, ...(cost ? [`cost: ${cost}`] : []), ...fork, ...parent].map(plain),
      `last turn ${plain(longTime(one.lastTurn))}`,
    ].join("\n\n"),
    spoken: [label, ...parts, ...fork, ...parent].join(", "),
    icon: {
      name: one.parent !== undefined ? "robot" : one.forkOf !== undefined ? "repo-forked" : "comment-discussion",
    },
    context: "conversation",
    command: "nexus.showTranscript",
    subject: { folder, program: one.program, conversation: one.id, title: label },
  };
}

/** `at least $1.20`; none where nothing is known. */
function costText({ costUsd, costLacks }: Pick<ConversationInfo, "costUsd" | "costLacks">): string | undefined {
  return costUsd === undefined ? undefined : `${costLacks?.length ? "at least " : ""}${dollars(costUsd)}`;
}

/** A folder as people say it, from this one where it is inside or above; nothing of this one. */
function placeOf(uri: string, folder: string, home: string | undefined): string[] {
  const place = directoryOf(`${uri}/.`, { folder, home });
  return place === "this folder" ? [] : [place];
}

/** What all conversations come to, and what could not be read. */
function sumNodes(listed: ConversationListResult | undefined): Node[] {
  if (!listed) return [];
  const { total, failures } = listed;
  const cost = costText(total);
  const parts = [plural(total.tokens, "token"), ...(cost ? [cost] : [])];
  const label = plural(total.conversations, "conversation");
  const sum: Node = {
    id: "sum",
    label,
    description: parts.join(" · "),
    tooltip: [
      "The sum of all conversations.",
      ...(total.costLacks?.map((one) => plain(`Not in it: ${one}.`)) ?? []),
    ].join("\n\n"),
    spoken: ["sum", label, ...parts].join(", "),
    icon: { name: "symbol-numeric" },
    context: "sum",
  };
  const files = plural(failures.length, "file");
  const failed: Node = {
    id: "failures",
    label: `${files} not read`,
    tooltip: failures
      .slice(0, PAGE)
      .map((one) => plain(`${pathOf(one.uri)}: ${one.message}`))
      .join("\n\n"),
    icon: { name: "warning", colour: "charts.yellow" },
    context: "failures",
  };
  return [...(failures.length > 0 ? [failed] : []), ...(total.conversations > 1 ? [sum] : [])];
}

function longTime(iso: string): string {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? iso : time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
