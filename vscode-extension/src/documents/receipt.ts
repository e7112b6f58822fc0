/** What a compaction did and what is lost with it, for people. Every figure is the daemon's. */

import type { Lost, Receipt } from "../protocol";
import { exactly, plural } from "../usage/figures";

/** The kinds of what may be lost, what matters most first. */
export const KINDS = [
  "rules",
  "instructions",
  "decisions",
  "paths",
  "commands",
  "identifiers",
  "errors",
] as const satisfies (keyof Lost)[];

/** The names of providers whose servers compact conversations. */
const PROVIDERS: Record<string, string> = { anthropic: "Anthropic", openai: "OpenAI" };

type Kind = (typeof KINDS)[number];

/** How many of a kind are lost; the receipt lists the first of them. */
export function lostCount({ lost }: Receipt, kind: Kind): number {
  return lost.counts[kind] ?? lost[kind]?.length ?? 0;
}

/** `3 paths`. */
export function lostText(receipt: Receipt, kind: Kind): string {
  return plural(lostCount(receipt, kind), kind.slice(0, -1));
}

/** `21 messages became a summary by gpt-4o, 1,675 → 535 tokens`. */
export function changeText(receipt: Receipt): string {
  const { replacedMessages, tokensBefore, tokensAfter } = receipt;
  const change = `${exactly(tokensBefore)} → ${exactly(tokensAfter)} tokens`;
  if (receipt.opaque) {
    return `${plural(replacedMessages, "message")} compacted by the provider (${writerOf(receipt)}), ${change}`;
  }
  return `${plural(replacedMessages, "message")} became a summary by ${writerOf(receipt)}, ${change}`;
}

/** `lost: 2 paths, 1 error`. */
export function lossText(receipt: Receipt): string {
  if (receipt.opaque) return "only the provider can read what became of them";
  const lost = KINDS.filter((kind) => lostCount(receipt, kind) > 0).map((kind) => lostText(receipt, kind));
  return lost.length > 0 ? `lost: ${lost.join(", ")}` : "nothing that matters is lost";
}

/** The whole receipt as Markdown. */
export function receiptText(session: string, receipt: Receipt, inForce: boolean): string {
  const { opaque, replacedOpaque } = receipt;
  return [
    `# Receipt of a compaction of ${session}`,
    "",
    `- id: ${receipt.id}`,
    `- when: ${receipt.created}`,
    `- state: ${inForce ? "in force" : "undone: the messages are back"}`,
    `- why: ${receipt.reason}`,
    `- by: ${receipt.model ? `${receipt.model} (${receipt.summarizer})` : writerOf(receipt)}`,
    ...(replacedOpaque ? [`- replaced, too: a compaction by the provider (${nameOf(replacedOpaque)})`] : []),
    `- messages replaced: ${exactly(receipt.replacedMessages)}`,
    `- tokens: ${exactly(receipt.tokensBefore)} → ${exactly(receipt.tokensAfter)}`,
    ...receipt.failures.map((failure) => `- failed before: ${failure}`),
    "",
    ...(opaque ? opaqueSection(receipt) : lossSection(receipt)),
    "",
  ].join("\n");
}

function lossSection(receipt: Receipt): string[] {
  const lost = KINDS.flatMap((kind) => lostSection(receipt, kind));
  const title = "## Lost: no longer anywhere in the conversation";
  return [title, ...(lost.length > 0 ? lost : ["", "Nothing that matters."])];
}

/** What can be said of a compaction that a provider's server made. */
function opaqueSection(receipt: Receipt): string[] {
  const text = receipt.text
    ? ["", "## What can be read of it", "", ...receipt.text.split(/\r?\n/).map((line) => `> ${line}`)]
    : [];
  return [
    "## Compacted by the provider",
    "",
    `A server of ${writerOf(receipt)} compacted the conversation. Only the provider can read the result, so nobody can say`,
    "what is lost. The messages are still in the ledger: the transcript and the search have them, and an undo sends them again.",
    ...text,
  ];
}

/** Who wrote the summary; its model, where the client that was asked names it. */
export function writerOf({ summarizer, model, opaque }: Receipt): string {
  return opaque ? nameOf(summarizer) : (model ?? summarizer);
}

function nameOf(provider: string): string {
  return PROVIDERS[provider] ?? provider;
}

function lostSection(receipt: Receipt, kind: Kind): string[] {
  const count = lostCount(receipt, kind);
  if (count === 0) return [];
  const listed = receipt.lost[kind] ?? [];
  const more = count > listed.length ? [`- … ${exactly(count - listed.length)} more`] : [];
  const title = `### ${kind[0]?.toUpperCase()}${kind.slice(1)} (${exactly(count)})`;
  return ["", title, "", ...listed.map((one) => `- ${inline(one)}`), ...more];
}

function inline(text: string): string {
  return `\`${text.replaceAll("`", "'").replace(/\s*\n\s*/g, " ⏎ ")}\``;
}
