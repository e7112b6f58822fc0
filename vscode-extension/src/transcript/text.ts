/**
 * A conversation as a text, and where everything stands in it. Pure.
 *
 * 1. Headings begin at the margin, all content is indented: no message can look like a heading.
 * 2. A message's heading says who speaks, its tokens and number, and whether it is still sent.
 * 3. A tool call is one line if its arguments are short. A result names the tool, and says how long it is.
 * 4. A compaction says which messages its summary replaces, a fork where it begins.
 */

import { lossText, writerOf } from "../documents/receipt";
import type { TranscriptCall, TranscriptMessage, TranscriptResult, TranscriptTurn } from "../protocol";
import { exactly, plural } from "../usage/figures";

/** Ranges of messages: the first, and the one behind the last. */
type Spans = readonly (readonly [number, number])[];

export type Speaker = "user" | "assistant" | "tool" | "summary" | "system";

const INDENT = "  ";
/** Characters of a tool call that stands on one line. */
const MOST_CALL = 120;
/** The message of Nexus that opens a conversation. */
const OPENING = /^\[Session started: [^\]]*\]$/;
const NAMES: Readonly<Record<Speaker, string>> = {
  user: "User",
  assistant: "Assistant",
  tool: "Result",
  summary: "Summary",
  system: "System",
};

/** A message in the text: its heading's line, and the last line of what it says. */
export interface MessagePlace {
  readonly message: TranscriptMessage;
  readonly speaker: Speaker;
  /** Whether the next request sends it. */
  readonly isSent: boolean;
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
  /** The line that says that the conversation is a fork, and that what stands above is shared. */
  readonly fork: number | undefined;
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
  const writing: Writing = { page, tools: toolsOf(page), lines };
  const turns: TurnPlace[] = [];
  let fork: number | undefined;
  for (const turn of page.turns) {
    if (fork === undefined && turns.length > 0 && isShared(turns.at(-1)?.turn, page) && !isShared(turn, page)) {
      fork = writeFork(writing);
    }
    lines.push("");
    turns.push(writeTurn(turn, writing));
  }
  if (page.turns.length === 0) lines.push("", page.messages > 0 ? "Nothing is shown." : "Nothing was said yet.");
  const rest = page.messages - page.end;
  if (rest === 0 && isShared(turns.at(-1)?.turn, page)) fork = writeFork(writing);
  let later: number | undefined;
  if (rest > 0) later = lines.push("", `… ${plural(rest, "later message")} not shown`) - 1;
  return { text: `${lines.join("\n")}\n`, lines, turns, fork, earlier, later };
}

/** What a text is made from, and its lines so far. */
interface Writing {
  readonly page: TranscriptResult;
  /** Names of tools by the ids of their calls. */
  readonly tools: ReadonlyMap<string, string>;
  readonly lines: string[];
}

function toolsOf({ turns }: TranscriptResult): ReadonlyMap<string, string> {
  const calls = turns.flatMap((turn) => turn.messages.flatMap((message) => message.calls ?? []));
  return new Map(calls.flatMap(({ id, name }) => (id === undefined ? [] : [[id, name] as const])));
}

/** Whether a turn is also one of another conversation: its id begins with the id of its line of turns. */
function isShared(turn: TranscriptTurn | undefined, { thread }: TranscriptResult): boolean {
  return turn !== undefined && !turn.turn.startsWith(`${thread}-`);
}

function writeFork({ page, lines }: Writing): number {
  const origin = page.forkedFrom;
  const title = origin === undefined ? "Fork" : `Fork of ${origin}`;
  return lines.push("", `${title} · the turns above are shared with ${origin ?? "another conversation"}`) - 1;
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
    ...(page.readFrom ? [`not kept: read from the file of ${page.readFrom}`] : []),
  ];
  return parts.join(" · ");
}

function writeTurn(turn: TranscriptTurn, writing: Writing): TurnPlace {
  const { page, lines } = writing;
  const title = turnTitle(turn);
  const line = lines.push(title) - 1;
  for (const about of turnLines(turn, page)) lines.push(INDENT + about);
  const messages: MessagePlace[] = [];
  for (const message of turn.messages) {
    lines.push("");
    messages.push(writeMessage(message, turn, writing));
  }
  return { turn, title, line, last: lines.length - 1, messages };
}

/** `Turn 2 · 20 Nov 2026, 12:00 · gpt-4o · 3 messages · 39 tokens`. */
function turnTitle(turn: TranscriptTurn): string {
  const number = `Turn ${exactly(turn.seq)}`;
  if (turn.type === "undo") return `Compaction undone · ${number} · ${timeOf(turn.created)}`;
  if (turn.type === "compaction")
    return [`Compaction · ${number}`, timeOf(turn.created), ...changeOf(turn)].join(" · ");
  const [first] = turn.messages;
  const isWhole = turn.messages.length === turn.count;
  const continued = first && first.position > turn.first ? ", continued" : "";
  const sum = turn.messages.reduce((total, message) => total + message.tokens, 0);
  const exact = turn.messages.every((message) => message.exact !== false);
  return [
    `${number}${continued}`,
    timeOf(turn.created),
    ...(turn.model ? [turn.model] : []),
    ...(isWhole && turn.count > 0 ? [plural(turn.count, "message"), tokensOf(sum, exact)] : []),
  ].join(" · ");
}

/** `3 messages → 1 summary`, `1,675 → 535 tokens`. */
function changeOf({ receipt }: TranscriptTurn): string[] {
  if (!receipt) return [];
  const { replacedMessages, tokensBefore, tokensAfter } = receipt;
  const tokens = `${exactly(tokensBefore)} → ${exactly(tokensAfter)} tokens`;
  const messages = plural(replacedMessages, "message");
  return [receipt.opaque ? `${messages} compacted by the provider` : `${messages} → 1 summary`, tokens];
}

/** What is said of a turn below its heading. */
function turnLines(turn: TranscriptTurn, page: TranscriptResult): string[] {
  const beside = turn.beside?.length ? [`Sent with it: ${turn.beside.join(", ")}`] : [];
  const leftOut = turn.leftOut?.length ? [`Left out, no room: ${turn.leftOut.join(", ")}`] : [];
  if (turn.type === "query") return [...beside, ...leftOut];
  if (turn.type === "undo") {
    const undone = page.turns.find((one) => one.type === "compaction" && one.compaction === turn.compaction);
    const which = undone ? ` #${exactly(undone.first + 1)}` : "";
    return [`The summary${which} is no longer sent; the messages that it replaced are.`];
  }
  const { receipt, folded, kept } = turn;
  return [
    ...(folded?.length ? [`The summary replaces ${spansText(folded)}.`] : []),
    ...(kept?.length ? [`Still sent beside it: ${spansText(kept)}.`] : []),
    ...(receipt ? [`${receipt.opaque ? "Compacted" : "Written"} by ${writerOf(receipt)}; ${lossText(receipt)}.`] : []),
  ];
}

function writeMessage(message: TranscriptMessage, turn: TranscriptTurn, writing: Writing): MessagePlace {
  const { page, lines } = writing;
  const speaker = speakerOf(message, turn);
  const fate = fateOf(message, turn, page);
  const title = messageTitle(message, speaker, fate, writing);
  const line = lines.push(title) - 1;
  if (message.text) pushText(lines, message.text, INDENT);
  for (const attachment of message.attachments ?? []) lines.push(`${INDENT}[${attachment}]`);
  const parts = (message.calls ?? []).flatMap((call) => writeCall(call, lines));
  if (lines.length - 1 === line) lines.push(`${INDENT}(empty)`);
  const isSent = !page.cleared && (fate === undefined || fate === SHORTENED);
  return { message, speaker, isSent, title, line, last: lines.length - 1, parts };
}

function speakerOf({ position, role, text }: TranscriptMessage, turn: TranscriptTurn): Speaker {
  if (turn.type === "compaction") return "summary";
  return position === 0 && OPENING.test(text) ? "system" : role;
}

/** A call on one line where it is short: JSON that is joined says the same. */
function writeCall(call: TranscriptCall, lines: string[]): [number, number][] {
  const name = `${INDENT}→ ${call.name}`;
  const joined = call.arguments.startsWith("{")
    ? call.arguments.split("\n").map((line) => line.trim()).join(" ") // biome-ignore format: a chain
    : call.arguments;
  if (!joined.includes("\n") && joined.length <= MOST_CALL) {
    lines.push(joined && joined !== "{}" ? `${name} ${joined}` : name);
    return [];
  }
  const first = lines.push(name) - 1;
  pushText(lines, call.arguments, INDENT + INDENT);
  return [[first, lines.length - 1]];
}

/** `Result of read · 12 tokens · 40 lines · #5 · no longer sent`. */
function messageTitle(
  message: TranscriptMessage,
  speaker: Speaker,
  fate: string | undefined,
  { tools }: Writing,
): string {
  const size = message.text.split("\n").length;
  return [
    nameOf(message, speaker, tools),
    tokensOf(message.tokens, message.exact !== false),
    ...(speaker === "tool" && size > 1 ? [plural(size, "line")] : []),
    `#${exactly(message.position + 1)}`,
    ...(message.time ? [timeOf(message.time)] : []),
    ...(fate ? [fate] : []),
  ].join(" · ");
}

function nameOf(message: TranscriptMessage, speaker: Speaker, tools: ReadonlyMap<string, string>): string {
  const name = message.name ?? (speaker === "tool" ? tools.get(message.toolCallId ?? "") : undefined);
  if (speaker === "system" && message.role !== "system") return "Nexus";
  if (name === undefined) return NAMES[speaker];
  return speaker === "tool" ? `${NAMES.tool} of ${name}` : `${NAMES[speaker]} (${name})`;
}

const SHORTENED = "sent shortened";

/** What became of a message; nothing of one that is sent as it is, or where that is not known. */
function fateOf({ position }: TranscriptMessage, turn: TranscriptTurn, page: TranscriptResult): string | undefined {
  if (page.cleared || page.sentUnknown) return undefined; // the title says the first
  if (isIn(page.sent ?? [], position)) return page.shortened?.includes(position) ? SHORTENED : undefined;
  const { summary } = page;
  const isFolded = summary !== undefined && position < summary && !isIn(page.kept ?? [], position);
  if (turn.type === "compaction" && !isFolded) return "no longer sent, compaction undone";
  return isFolded ? `no longer sent, summary: #${exactly(summary + 1)}` : "no longer sent";
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

/** Lines of a result or a summary that are shown unfolded. */
const MOST_UNFOLDED = 8;

/** The messages that are folded at first: long results of tools, long summaries. */
export function longMessages({ turns }: TranscriptText): MessagePlace[] {
  return turns
    .flatMap((turn) => turn.messages)
    .filter(({ speaker, line, last }) => (speaker === "tool" || speaker === "summary") && last - line > MOST_UNFOLDED);
}
