/**
 * A conversation as a text, and where everything stands in it. Pure.
 *
 * 1. Headings begin at the margin, everything that somebody said is indented: no message can look like a heading.
 * 2. A message's heading says its number, role and tokens, and whether it is still sent.
 * 3. A compaction says which messages its summary stands for.
 */

import type { TranscriptCall, TranscriptMessage, TranscriptResult, TranscriptTurn } from "../protocol";
import { exactly, plural } from "../usage/figures";

/** Ranges of messages: the first, and the one behind the last. */
type Spans = readonly (readonly [number, number])[];

import { changeText, lossText } from "../documents/receipt";

const INDENT = "  ";

/** A message in the text: its heading's line, and the last line of what it says. */
export interface MessagePlace {
  readonly message: TranscriptMessage;
  readonly title: string;
  readonly line: number;
  readonly last: number;
  /** Parts of it that can be folded by themselves: the lines of a call's arguments. */
  readonly parts: readonly (readonly [first: number, last: number])[];
}

export interface TurnPlace {
  readonly turn: TranscriptTurn;
  readonly title: string;
  readonly line: number;
  readonly last: number;
  readonly messages: readonly MessagePlace[];
}

export interface TranscriptText {
  readonly text: string;
  readonly lines: readonly string[];
  readonly turns: readonly TurnPlace[];
  /** The lines that say that there are more messages before and after. */
  readonly earlier: number | undefined;
  readonly later: number | undefined;
}

export interface Match {
  readonly line: number;
  readonly start: number;
  readonly end: number;
}

export function transcriptText(page: TranscriptResult): TranscriptText {
  const lines: string[] = [titleOf(page)];
  const earlier = page.first > 0 ? lines.push(`… ${plural(page.first, "earlier message")} not shown`) - 1 : undefined;
  const turns: TurnPlace[] = [];
  for (const turn of page.turns) {
    lines.push("");
    turns.push(writeTurn(turn, page, lines));
  }
  if (page.turns.length === 0) lines.push("", page.messages > 0 ? "Nothing is shown." : "Nothing was said yet.");
  const rest = page.messages - page.end;
  let later: number | undefined;
  if (rest > 0) later = lines.push("", `… ${plural(rest, "later message")} not shown`) - 1;
  return { text: `${lines.join("\n")}\n`, lines, turns, earlier, later };
}

/** The place of a message; of one that is not in the text, undefined. */
export function placeOf({ turns }: TranscriptText, position: number): MessagePlace | undefined {
  for (const { messages } of turns) {
    const first = messages[0]?.message.position;
    if (first === undefined || position < first || position >= first + messages.length) continue;
    return messages[position - first];
  }
  return undefined;
}

/** Where in a message stands what a search found; where it cannot be told, nothing. */
export function matchOf(text: TranscriptText, place: MessagePlace, snippet: string): Match | undefined {
  const found = /«([^«»]+)»/.exec(snippet);
  const word = found?.[1];
  if (!found || !word) return undefined;
  const before = snippet.slice(0, found.index).replace(/^…/, "").split(/\r?\n/).at(-1) ?? "";
  for (const [context, exact] of [[before, true] as const, ["", true] as const, ["", false] as const]) {
    const sought = exact ? context + word : (context + word).toLowerCase();
    for (let line = place.line + 1; line <= place.last; line++) {
      const shown = text.lines[line] ?? "";
      const at = (exact ? shown : shown.toLowerCase()).indexOf(sought);
      if (at >= 0) return { line, start: at + context.length, end: at + sought.length };
    }
  }
  return undefined;
}

/** `main · 26 messages · tokens by o200k_base`. */
function titleOf(page: TranscriptResult): string {
  const { counter } = page;
  const parts = [
    page.session,
    plural(page.messages, "message"),
    `tokens by ${counter.name}${counter.exact ? "" : ", an estimate"}`,
    ...(page.cleared ? ["cleared: nothing of this is sent any more"] : []),
  ];
  return parts.join(" · ");
}

function writeTurn(turn: TranscriptTurn, page: TranscriptResult, lines: string[]): TurnPlace {
  const title = turnTitle(turn);
  const line = lines.push(title) - 1;
  for (const about of turnLines(turn, page)) lines.push(INDENT + about);
  const messages: MessagePlace[] = [];
  for (const message of turn.messages) {
    lines.push("");
    messages.push(writeMessage(message, turn, page, lines));
  }
  return { turn, title, line, last: lines.length - 1, messages };
}

function turnTitle(turn: TranscriptTurn): string {
  const [first] = turn.messages;
  const isWhole = turn.messages.length === turn.count;
  const kind = { query: "", compaction: ": compaction", undo: ": compaction taken back" }[turn.type];
  const continued = first && first.position > turn.first ? ", continued" : "";
  const sum = turn.messages.reduce((total, message) => total + message.tokens, 0);
  const exact = turn.messages.every((message) => message.exact !== false);
  return [
    `Turn ${exactly(turn.seq)}${kind}${continued}`,
    timeOf(turn.created),
    ...(turn.model ? [turn.model] : []),
    ...(isWhole && turn.count > 0 ? [plural(turn.count, "message"), tokensOf(sum, exact)] : []),
  ].join(" · ");
}

/** What is said of a turn below its heading. */
function turnLines(turn: TranscriptTurn, page: TranscriptResult): string[] {
  const beside = turn.beside?.length ? [`with ${turn.beside.join(", ")}`] : [];
  const leftOut = turn.leftOut?.length ? [`without ${turn.leftOut.join(", ")}: no room`] : [];
  if (turn.type === "query") return [...beside, ...leftOut];
  if (turn.type === "undo") {
    const undone = page.turns.find((one) => one.type === "compaction" && one.compaction === turn.compaction);
    const which = undone ? ` #${exactly(undone.first + 1)}` : "";
    return [`The summary${which} is not sent any more; the messages that it stood for are.`];
  }
  const kept = turn.kept?.length ? `; kept beside it: ${spansText(turn.kept)}` : "";
  return [
    ...(turn.receipt ? [`${changeText(turn.receipt)}; ${lossText(turn.receipt)}`] : []),
    ...(turn.folded?.length ? [`The summary stands for ${spansText(turn.folded)}${kept}`] : []),
  ];
}

function writeMessage(
  message: TranscriptMessage,
  turn: TranscriptTurn,
  page: TranscriptResult,
  lines: string[],
): MessagePlace {
  const title = messageTitle(message, turn, page);
  const line = lines.push(title) - 1;
  if (message.text) pushText(lines, message.text, INDENT);
  for (const attachment of message.attachments ?? []) lines.push(`${INDENT}[${attachment}]`);
  const parts = (message.calls ?? []).flatMap((call) => writeCall(call, lines));
  if (lines.length - 1 === line) lines.push(`${INDENT}(empty)`);
  return { message, title, line, last: lines.length - 1, parts };
}

function writeCall(call: TranscriptCall, lines: string[]): [number, number][] {
  const first = lines.push(`${INDENT}→ ${call.name}${call.id ? ` (${call.id})` : ""}`) - 1;
  if (call.arguments) pushText(lines, call.arguments, INDENT + INDENT);
  const last = lines.length - 1;
  return last > first ? [[first, last]] : [];
}

/** `#5 tool read · of call_1 · 12 tokens · not sent any more`. */
function messageTitle(message: TranscriptMessage, turn: TranscriptTurn, page: TranscriptResult): string {
  const role = turn.type === "compaction" ? "summary" : message.role;
  const fate = fateOf(message, turn, page);
  return [
    `#${exactly(message.position + 1)} ${role}${message.name ? ` ${message.name}` : ""}`,
    ...(message.toolCallId ? [`of ${message.toolCallId}`] : []),
    tokensOf(message.tokens, message.exact !== false),
    ...(message.time ? [timeOf(message.time)] : []),
    ...(fate ? [fate] : []),
  ].join(" · ");
}

/** What became of a message; nothing of one that is sent as it is. */
function fateOf({ position }: TranscriptMessage, turn: TranscriptTurn, page: TranscriptResult): string | undefined {
  if (page.cleared) return undefined; // the title says it
  if (isIn(page.sent ?? [], position)) return page.shortened?.includes(position) ? "sent shortened" : undefined;
  const { summary } = page;
  const isFolded = summary !== undefined && position < summary && !isIn(page.kept ?? [], position);
  if (turn.type === "compaction" && !isFolded) return "not sent any more: taken back";
  return isFolded ? `not sent any more: #${exactly(summary + 1)} stands for it` : "not sent any more";
}

function isIn(spans: Spans, position: number): boolean {
  let low = 0;
  let high = spans.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const [first, end] = spans[middle] ?? [0, 0];
    if (position < first) high = middle - 1;
    else if (position >= end) low = middle + 1;
    else return true;
  }
  return false;
}

/** `#1 to #9, #11`. */
function spansText(spans: Spans): string {
  const one = (position: number) => `#${exactly(position + 1)}`;
  return spans.map(([first, end]) => (end === first + 1 ? one(first) : `${one(first)} to ${one(end - 1)}`)).join(", ");
}

function pushText(lines: string[], text: string, indent: string): void {
  for (const line of text.split(/\r?\n/)) lines.push(line ? indent + line : "");
}

function tokensOf(tokens: number, exact: boolean): string {
  return `${exact ? "" : "≈ "}${plural(tokens, "token")}`;
}

function timeOf(iso: string): string {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? iso : time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
