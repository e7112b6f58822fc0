/** What the chat shows of the daemon's figures, as Markdown. Every number is the daemon's own. No VS Code here. */

import { changeText, KINDS, lossText, lostCount, lostText } from "../documents/receipt";
import type { AgentInfo, AssembledContext, LayersResult, Receipt, TokenUsage, UsageRow } from "../protocol";
import { correctionText, exactly, percentText, plural, TITLES, totalOf } from "../usage/figures";
import type { ThreadSession } from "./threadSession";

/** Rows of a table: the panel has all. */
const MOST_ROWS = 40;
/** Things of one kind that a receipt lists. */
const MOST_LOST = 8;

const NAMES: ReadonlyMap<string, string> = new Map(Object.entries(TITLES));

/** Text that Markdown shows as it is, in a line or a table's cell. */
export function plain(text: string): string {
  return text.replace(/\s+/gu, " ").replace(/[\\`*_{}[\]()<>#+!|~$&-]/gu, "\\$&");
}

export function tokens(count: number, exact: boolean): string {
  return `${exact ? "" : "≈ "}${exactly(count)}`;
}

/** What would be sent, as a table. */
export function usageTable(context: AssembledContext): string {
  const { usage } = context;
  const shown = usage.rows.slice(0, MOST_ROWS);
  const rest = usage.rows.length - shown.length;
  const lines = [
    usageLine(usage, context.session),
    "",
    "| | What | Tokens |",
    "|---|---|--:|",
    ...shown.map(rowLine),
    ...(rest > 0 ? [`| | … and ${rest} more, in the panel | |`] : []),
    `| | **Total** | **${tokens(usage.total, usage.counter.exact)}** |`,
  ];
  const notes = contextNotes(context);
  return [...lines, ...(notes.length > 0 ? ["", ...notes.map((note) => `- ${note}`)] : [])].join("\n");
}

function usageLine(usage: TokenUsage, session: string): string {
  const limit = exactly(usage.available);
  const model = usage.model === "" ? "" : ` of ${plain(usage.model)}`;
  const known = usage.limitKnown ? "" : " (the model is unknown: its window is a guess)";
  const total = totalOf(usage);
  const correction = correctionText(usage);
  const used = `${tokens(total.tokens, total.exact)}${correction === undefined ? "" : ` (${correction})`}`;
  const over = usage.over ? " **That is too much.**" : "";
  return `Conversation **${plain(session)}**: ${used} of ${limit} tokens${model}, ${percentText(total.percent)}${known}.${over}`;
}

function rowLine(row: UsageRow): string {
  const source = row.source === undefined ? plain(row.label) : `[${plain(row.label)}](${linkOf(row.source)})`;
  return `| ${NAMES.get(row.category) ?? plain(row.category)} | ${source} | ${tokens(row.tokens, row.exact)} |`;
}

function linkOf(source: NonNullable<UsageRow["source"]>): string {
  const uri = source.uri.replace(/[()|\s]/gu, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `${uri}#L${source.range.start.line + 1}`;
}

/** What a reader is told of an instruction file that is not sent whole. */
const ATTACHMENT_NOTES: Readonly<Record<string, string>> = {
  shortened: "it is too long, and is sent shortened.",
  "no-room": "it does not fit beside the conversation, and is not sent.",
  unreadable: "it cannot be read, and is not sent.",
};

/** What became of instruction files that only this message is sent with, where one is not sent whole. One line each. */
export function attachmentNotes({ metadata }: AssembledContext): string[] {
  return [...(metadata.instructions ?? []), ...(metadata.attachments ?? [])].flatMap(({ label, status, file }) => {
    const note = ATTACHMENT_NOTES[status];
    const why = file === undefined ? "VS Code attached this instruction file" : `This is for ${plain(file)}`;
    return note === undefined ? [] : [`${plain(label)}: ${why}; ${note}`];
  });
}

/** What was compacted for a request, left out of it, or is time to be compacted. One line each. */
export function contextNotes(context: AssembledContext): string[] {
  const { truncated, truncation, compaction, shouldCompact, compactionReason, wantedPercent } = context.metadata;
  const notes: string[] = [];
  if (compaction?.receipt !== undefined) {
    const still = compaction.reached ? "" : " It is still above the threshold.";
    notes.push(`Compacted first: ${plain(changeText(compaction.receipt))}; ${lossText(compaction.receipt)}.${still}`);
  } else if (compaction?.problem !== undefined) {
    notes.push(`Compaction was due, but: ${plain(compaction.problem)}`);
  } else if (compaction !== undefined) {
    notes.push("Compacted first, by another window or request.");
  }
  if (truncated) {
    const removed = truncation?.removedTokens ?? 0;
    const count = truncation?.removedMessages ?? 0;
    notes.push(
      `The conversation does not fit: ${count} older messages are not sent (${exactly(removed)} tokens less).`,
    );
  } else if (shouldCompact && compactionReason === "token_limit") {
    notes.push(`The conversation takes ${percentText(wantedPercent)} of what the model takes.`);
  }
  return notes;
}

/** What a compaction did, and what is gone with it. */
export function receiptText(receipt: Receipt, session: string): string {
  const gone = lostLines(receipt);
  const lost =
    gone.length === 0
      ? ["Every path, command, name, error, instruction and decision is still there."]
      : ["What was in the old messages and is nowhere in the conversation now:", "", ...gone];
  const failed = receipt.failures.map((failure) => `- Asked before, without success: ${plain(failure)}`);
  return [
    `Conversation **${plain(session)}**: ${plain(changeText(receipt))}.`,
    "",
    ...lost,
    ...(failed.length > 0 ? ["", ...failed] : []),
  ].join("\n");
}

function lostLines(receipt: Receipt): string[] {
  return KINDS.filter((kind) => lostCount(receipt, kind) > 0).map((kind) => {
    const listed = receipt.lost[kind] ?? [];
    const shown = listed.slice(0, MOST_LOST).map(plain).join(", ");
    const more = lostCount(receipt, kind) > Math.min(listed.length, MOST_LOST) ? ", …" : "";
    return `- **${lostText(receipt, kind)}**: ${shown}${more}`;
  });
}

/** The first line of an answer: which session it is in. Empty where nothing changed since the turn before. */
export function placeNote(place: ThreadSession): string {
  const name = `**${plain(place.session)}**`;
  const turns = plural(place.turns, "turn");
  const instead = `**${plain(place.instead ?? "")}**`;
  switch (place.reason) {
    case "same":
      return "";
    case "switched":
      return `Goes on in conversation ${name} (${turns}), which you switched to.`;
    case "branch":
      return `You went back, so this goes on in ${name}, a fork. What you took back stays in ${instead}.`;
    case "cleared":
      return `Conversation ${name} was cleared since the last answer: the model does not see what stands above.`;
    case "deleted":
      return `Conversation ${name} was deleted: a new one of its name begins here. The model does not see what stands above.`;
    case "first":
      return `Conversation ${name} begins here.`;
    case "chosen":
      return `Goes on in conversation ${name} (${turns}).`;
    case "fresh":
      return `Conversation ${name} begins here; ${instead} stays as it is.`;
  }
}

/** The live agents of a folder. */
export function agentsTable(agents: readonly AgentInfo[], viewed: string | undefined): string {
  const lines = agents.map((agent) => {
    const name = agent.agentId === viewed ? `**${plain(agent.agentId)}** (viewed)` : plain(agent.agentId);
    const used = tokens(agent.usage.total, agent.usage.counter.exact);
    return `| ${name} | ${plain(agent.role)} | ${plain(agent.cwd)} | ${plain(agent.task ?? "")} | ${plain(agent.parent ?? "")} | ${used} |`;
  });
  return ["| Agent | Role | Directory | Task | Below | Tokens |", "|---|---|---|---|---|--:|", ...lines].join("\n");
}

/** The skills of a folder, those last that cannot be used: their files have errors. */
export function skillsTable({ layers, problems, counter }: LayersResult): string {
  const wrong = new Set(problems.filter((problem) => problem.severity === 1).map((problem) => problem.uri));
  const files = layers.flatMap((layer) => layer.files.filter((file) => file.kind === "skill"));
  const ready = files.filter((file) => file.name !== undefined);
  const broken = files.filter((file) => file.name === undefined && wrong.has(file.uri));
  if (ready.length + broken.length === 0) {
    return "This folder has no skills. A skill is a directory with a `SKILL.md`, in `.nexus3/skills` or `.claude/skills`.";
  }
  const lines = [
    ...ready.map(({ name = "", description = "", tokens: listed = 0 }) => {
      return `| ${plain(name)} | ${plain(description)} | ${tokens(listed, counter.exact)} |`;
    }),
    ...broken.map(
      ({ uri }) => `| ${plain(decodeURIComponent(uri.split("/").at(-2) ?? ""))} | broken: see Problems | |`,
    ),
  ];
  return [
    "`/skill NAME [message]` sends a message with the whole text of a skill. These are listed for the model in every request:",
    "",
    "| Skill | What it does | Tokens in the list |",
    "|---|---|--:|",
    ...lines,
  ].join("\n");
}
