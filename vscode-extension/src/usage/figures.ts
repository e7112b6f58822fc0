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

/** `$0.0012`: two digits that say something. */
export function dollars(value: number): string {
  return `$${value >= 0.01 ? value.toFixed(2) : Number(value.toPrecision(2)).toFixed(6).replace(/0+$/, "")}`;
}

/** The total to show: as the provider would count it, as soon as it has reported a usage. */
export interface Total {
  readonly tokens: number;
  /** Of what is available. */
  readonly percent: number;
  readonly exact: boolean;
}

export function totalOf(usage: Pick<TokenUsage, "total" | "percent" | "counter" | "corrected" | "parts">): Total {
  const exact = usage.counter.exact && (usage.parts?.every((part) => part.exact) ?? true);
  return usage.corrected === undefined
    ? { tokens: usage.total, percent: usage.percent, exact }
    : { tokens: usage.corrected.total, percent: usage.corrected.percent, exact: false };
}

/** How wrong such totals were lately, such as "±6 %"; none until that is known. */
export function errorText(usage: Pick<TokenUsage, "corrected">): string | undefined {
  const error = usage.corrected?.errorPercent;
  return error === undefined ? undefined : `±${percentText(error)}`;
}

/** What the total is made of, if a provider's count is in it. */
export function correctionText(usage: Pick<TokenUsage, "corrected">): string | undefined {
  if (usage.corrected === undefined) return undefined;
  const error = errorText(usage);
  return `corrected by what the provider counted${error === undefined ? "" : `, lately ${error}`}`;
}

/** One line in which nothing hides: characters without a shape, and those that turn the text around, are codes. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
}
