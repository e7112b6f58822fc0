/** Numbers, shares, times and paths as people read them. The figures themselves are the daemon's. */

import type { Location, TokenUsage } from "../protocol";
import { type Category, dollars, exactly, plural, TITLES } from "../usage/figures";

export { dollars, plural };

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The categories in the order in which they are sent, with their names and theme colours. */
export const CATEGORIES: Readonly<Record<Category, { title: string; icon: string; colour: string }>> = {
  system: { title: TITLES.system, icon: "book", colour: "nexus.instructions" },
  tools: { title: TITLES.tools, icon: "tools", colour: "nexus.tools" },
  history: { title: TITLES.history, icon: "comment-discussion", colour: "nexus.history" },
  memory: { title: TITLES.memory, icon: "database", colour: "nexus.memory" },
  event: { title: TITLES.event, icon: "edit", colour: "nexus.message" },
};

export function isCategory(name: string): name is Category {
  return Object.hasOwn(CATEGORIES, name);
}

/** `1,234`. */
export function count(value: number): string {
  return Math.abs(value) < 1_000 ? String(value) : exactly(value);
}

/** `1,234 tokens`, with a `≈` where they are an estimate. */
export function tokensOf(value: number, exact: boolean): string {
  return `${exact ? "" : "≈ "}${plural(value, "token")}`;
}

/** A percentage to one decimal, as the daemon rounds it. */
export function percent(value: number): string {
  return `${Number(value.toFixed(1))} %`;
}

/** Tokens as a share of what is available, so that the shares add up to the daemon's `percent`. */
export function share(tokens: number, usage: Pick<TokenUsage, "available">): string {
  if (usage.available <= 0) return "–";
  const value = (100 * tokens) / usage.available;
  return tokens > 0 && value < 0.05 ? "< 0.1 %" : percent(value);
}

/** The time of today, else the day. Without a valid time, "". */
export function when(iso: string, now: Date): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return "";
  if (time.toDateString() === now.toDateString()) {
    return time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  }
  const year = now.getTime() - time.getTime() > 300 * DAY_MS ? ({ year: "numeric" } as const) : {};
  return time.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...year });
}

/** The path of a file's URI; from the folder, if it is inside. */
export function pathOf(uri: string, folder?: string): string {
  const root = folder?.replace(/\/+$/, "");
  const inside = root && uri.startsWith(`${root}/`) ? uri.slice(root.length + 1) : uri.replace(/^file:\/\//, "");
  try {
    return decodeURIComponent(inside);
  } catch {
    return inside; // a lone % is no escape
  }
}

/** The directory of a file's URI as people say it: from the folder, above it as `../..`, else from the home directory. */
export function directoryOf(uri: string, { folder, home }: { folder: string; home?: string | undefined }): string {
  const own = pathOf(uri.slice(0, uri.lastIndexOf("/")), folder);
  const root = pathOf(folder);
  if (own !== home && root.startsWith(`${own}/`)) {
    const levels = root.slice(own.length + 1).split("/");
    return levels.map(() => "..").join("/");
  }
  const path = own === root ? "this folder" : own;
  if (home === undefined || path === root || !path.startsWith("/")) return path;
  return path === home ? "~" : path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/** A text with the paths in it as people say them: from the folder, else from the home directory. */
export function withShortPaths(text: string, { folder, home }: { folder: string; home?: string | undefined }): string {
  const inside = text.replaceAll(`${pathOf(folder)}/`, "");
  return home === undefined ? inside : inside.replaceAll(`${home}/`, "~/");
}

/** Whether a name is one of several: those need more than their name to be told apart. */
export function repeated(names: Iterable<string>): (name: string) => boolean {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return (name) => (counts.get(name) ?? 0) > 1;
}

/** The last part of a path or URI. */
export function nameOf(path: string): string {
  const parts = pathOf(path).split(/[\\/]/).filter(Boolean);
  return parts[parts.length - 1] ?? path;
}

/** `docs/threats.md:3`, lines from 1; an empty place at the top is the file alone. */
export function placeOf(source: Location, folder?: string): string {
  const { start, end } = source.range;
  const path = pathOf(source.uri, folder);
  if (end.line === 0 && end.character === 0) return path;
  return end.line > start.line ? `${path}:${start.line + 1}–${end.line + 1}` : `${path}:${start.line + 1}`;
}

/** Text that Markdown shows as it is. */
export function plain(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>~&$]/g, "\\$&").replace(/\s*\n\s*/g, " ");
}
