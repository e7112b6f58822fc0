/**
 * The parts of a window that people ask about: whose text it is, and what it is for. Pure.
 *
 * 1. The system prompt is split by the server, to the token: headings and paths that Nexus puts around a file are
 *    Nexus's own text. An older server does not split it: then each row as a whole is of one part.
 * 2. A category of a newer server is a part of its own.
 */
import type { TokenUsage, UsageRow } from "../protocol";

export type Part = "program" | "instructions" | "skills" | "tools" | "nexus" | "history" | "memory" | "message";

export interface PartStyle {
  readonly title: string;
  /** What belongs to it, for people. */
  readonly holds: string;
  /** A colour of package.json. */
  readonly colour: string;
}

/** In the order in which they are shown. */
export const PARTS: Readonly<Record<Part, PartStyle>> = {
  program: {
    title: "Prompt and tools",
    holds: "The assistant's own prompt and tools, as its version sends them at a terminal, from an empty repository",
    colour: "nexus.ownText",
  },
  instructions: {
    title: "Your instructions",
    holds: "What stands in instruction files of all layers, and in what they import",
    colour: "nexus.instructions",
  },
  skills: {
    title: "Skills",
    holds: "Names and descriptions of skills, and the text of active ones",
    colour: "nexus.skills",
  },
  tools: {
    title: "MCP and tools",
    holds: "Tool definitions, and the list of MCP servers",
    colour: "nexus.tools",
  },
  nexus: {
    title: "Nexus's own text",
    holds: "What Nexus writes into the prompt: headings, paths, environment, settings",
    colour: "nexus.ownText",
  },
  history: {
    title: "History",
    holds: "Earlier messages of the conversation",
    colour: "nexus.history",
  },
  memory: {
    title: "Memory and events",
    holds: "What Nexus adds to the message: memory, state of git, attachments",
    colour: "nexus.memory",
  },
  message: { title: "Message", holds: "The message itself", colour: "nexus.message" },
};

/** A part, or a category that this version does not know. */
export type PartName = Part | (string & {});

export interface PartSum {
  readonly part: PartName;
  readonly tokens: number;
  readonly exact: boolean;
}

export function isPart(name: string): name is Part {
  return Object.hasOwn(PARTS, name);
}

/** How a part is shown; one without a style of its own by its name. */
export function styleOf(part: PartName): PartStyle {
  return isPart(part) ? PARTS[part] : { title: part, holds: "", colour: "descriptionForeground" };
}

const ORDER = Object.keys(PARTS);

/** Of a row without a file, or of one that Nexus brings: the texts of the package that are about something else. */
const SHIPPED = /\/nexus_context\/(?:folder\/)?(?:prompt\/texts\/(\w+)\.md|defaults\/)/;
const ABOUT: Readonly<Record<string, Part>> = { skills: "skills", mcp_servers: "tools", tools: "tools" };

/** The part that a row belongs to. */
export function partOf(row: Pick<UsageRow, "category" | "label" | "source">): PartName {
  switch (row.category) {
    case "system":
      return partOfSection(row.source?.uri);
    case "event":
      return row.label === "current message" ? "message" : "memory";
    default:
      return row.category;
  }
}

function partOfSection(uri: string | undefined): Part {
  if (uri === undefined) return "nexus";
  if (uri.endsWith("/SKILL.md")) return "skills";
  const shipped = SHIPPED.exec(uri);
  return shipped ? (ABOUT[shipped[1] ?? ""] ?? "nexus") : "instructions";
}

/** Tokens of each part that has any, in the order of the parts; unknown ones last. */
export function byPart({ rows, parts = [] }: Pick<TokenUsage, "rows" | "parts">): PartSum[] {
  const sums = new Map<PartName, PartSum>();
  function add(part: PartName, tokens: number, exact: boolean): void {
    const before = sums.get(part);
    sums.set(part, { part, tokens: (before?.tokens ?? 0) + tokens, exact: exact && (before?.exact ?? true) });
  }
  for (const row of rows) {
    if (row.category !== "system" || parts.length === 0) add(partOf(row), row.tokens, row.exact);
  }
  for (const { part, tokens, exact } of parts) if (tokens > 0) add(part, tokens, exact);
  const place = (part: string) => (isPart(part) ? ORDER.indexOf(part) : ORDER.length);
  return [...sums.values()].sort((one, other) => place(one.part) - place(other.part));
}

/** The row at which a part begins, tool definitions before what the prompt says of them. */
export function firstRow(part: string, rows: readonly UsageRow[]): UsageRow | undefined {
  const own = rows.filter((row) => partOf(row) === part);
  return own.find(({ category }) => category !== "system") ?? own[0];
}
