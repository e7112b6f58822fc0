/** Numbers for people, the same everywhere. They come from the daemon; nothing is added up here but rows of a category. */
import type { TokenUsage, UsageRow } from "../protocol";

export type Category = UsageRow["category"];

/** The categories in the order in which they are sent. */
export const TITLES: Readonly<Record<Category, string>> = {
  system: "System prompt",
  tools: "Tools",
  history: "History",
  memory: "Memory",
  event: "Event",
};

/** `12,345`. */
export function exactly(tokens: number): string {
  return tokens.toLocaleString("en-US");
}

/** `950`, `12.3k`, `200k`, `1.05M`: three digits that count. */
export function briefly(tokens: number): string {
  if (tokens < 1_000) return String(tokens);
  const [value, unit] = tokens < 999_500 ? [tokens / 1_000, "k"] : [tokens / 1_000_000, "M"];
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return `${Number(value.toFixed(digits))}${unit}`;
}

export function percentText(percent: number): string {
  return `${percent < 10 ? percent : Math.round(percent)} %`;
}

/** `≈ ` before a figure that is an estimate. */
export function about(usage: Pick<TokenUsage, "counter">): string {
  return usage.counter.exact ? "" : "≈ ";
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${exactly(count)} ${count === 1 ? one : many}`;
}
