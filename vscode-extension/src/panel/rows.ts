/**
 * Every row of a request's cost as a tree: category → section → what it includes.
 *
 * 1. `X: Y` stands below `X` (an import below the section that imports it). Of GROUPS there is no row `X`: its node
 *    sums up what stands below.
 * 2. Tools stand below the MCP server whose name they begin with.
 * 3. Ids do not hold counts: the row of a conversation stays the same row while it grows.
 * 4. Rows of one name beside each other say the directory of their file, too.
 */

import type { TokenUsage, UsageRow } from "../protocol";
import { firstRow, isPart } from "../usage/parts";
import { type Icon, type Node, sameLocation } from "./node";
import {
  CATEGORIES,
  count,
  directoryOf,
  isCategory,
  placeOf,
  plain,
  plural,
  repeated,
  share,
  tokensOf,
} from "./wording";

const OPEN = "nexus.panel.openSource";
const SHOW = "nexus.showTranscript";

/** Characters that providers do not take in the name of a tool: the daemon puts `_` in their place. */
const REFUSED = /[^A-Za-z0-9_-]/g;

/** What the labels of instruction files begin with that only a message is sent with. */
const GROUPS = ["Attached by the editor", "For these files"] as const;

export interface RowsGiven {
  readonly usage: TokenUsage;
  /** URI of the folder that is shown. */
  readonly folder: string;
  /** Path of the user's home directory. */
  readonly home?: string;
  /** Names of the MCP servers. */
  readonly servers?: readonly string[];
}

/** Makes trees one after the other: what did not change since the last one is the same node. */
export function rowTrees(): (given: RowsGiven) => Node[] {
  let last: Made = new Map();
  return (given) => {
    const made: Made = new Map();
    const nodes = rowNodes({ ...given, last, made });
    last = made;
    return nodes;
  };
}

type Made = Map<string, { row: UsageRow; available: number; folder: string; where: string | undefined; node: Node }>;

interface Making extends RowsGiven {
  /** Nodes of rows, by id: of the last tree, and of this one. */
  readonly last: Made;
  readonly made: Made;
}

function rowNodes(given: Making): Node[] {
  const groups = new Map<string, UsageRow[]>();
  for (const row of given.usage.rows) {
    const group = groups.get(row.category);
    if (group) group.push(row);
    else groups.set(row.category, [row]);
  }
  return [...groups].map(([category, rows]) => categoryNode(category, rows, given));
}

/** The id of a category's node. */
export function categoryId(category: string): string {
  return `category:${category}`;
}

/** The id of the node at which a part of the bar begins: a row's in the system prompt, else a category's. */
export function nodeOfPart(part: string, { rows }: TokenUsage): string {
  const row = firstRow(part, rows);
  if (!row) return categoryId(isPart(part) ? "system" : "history");
  return row.category === "system" ? `row:system/${row.label}` : categoryId(row.category);
}

function categoryNode(category: string, rows: readonly UsageRow[], given: Making): Node {
  const known = isCategory(category) ? CATEGORIES[category] : undefined;
  const title = known?.title ?? category;
  const tokens = sum(rows);
  const exact = rows.every((row) => row.exact);
  const children = category === "tools" ? toolNodes(rows, given) : sectionNodes(category, rows, given);
  return {
    id: categoryId(category),
    label: title,
    description: figures(tokens, exact, given.usage),
    figure: figure(tokens, exact),
    tooltip: `**${plain(title)}**\n\n${cost(tokens, exact, given.usage)} in ${plural(rows.length, "row")}${later(category, given.usage)}`,
    spoken: `${title}, ${cost(tokens, exact, given.usage)}`,
    icon: { name: known?.icon ?? "circle-outline", colour: known?.colour ?? "descriptionForeground" },
    context: "category",
    open: true,
    children,
  };
}

/** What the tools of a request leave out at first. */
function later(category: string, { deferredTokens, counter }: TokenUsage): string {
  if (category !== "tools" || deferredTokens === undefined) return "";
  return `\n\n${tokensOf(deferredTokens, counter.exact)} of MCP tools are sent when the model looks for them`;
}

function sectionNodes(category: string, rows: readonly UsageRow[], given: Making): Node[] {
  const id = identities(`row:${category}`);
  const isRepeated = repeated(rows.map((row) => row.label));
  const parts: { node: Node; label: string; children: Node[] }[] = [];
  const byLabel = new Map<string, Node[]>();
  for (const row of rows) {
    const group = groupOf(row.label);
    if (group !== undefined && !byLabel.has(group)) {
      const children: Node[] = [];
      parts.push({ node: groupNode(group, rows, given), label: group, children });
      byLabel.set(group, children);
    }
    const owner = ownerOf(row.label, byLabel);
    const short = owner ? row.label.slice(owner.label.length + 2) : shortened(row.label);
    const node = rowNode(id(row.label), short, row, given, isRepeated(row.label));
    if (owner) {
      owner.children.push(node);
      continue;
    }
    const children: Node[] = [];
    parts.push({ node, label: row.label, children });
    byLabel.set(row.label, children);
  }
  return parts.map(({ node, children }) => (children.length ? { ...node, open: true, children } : node));
}

function groupOf(label: string): string | undefined {
  return GROUPS.find((group) => label.startsWith(`${group}: `));
}

function groupNode(group: string, rows: readonly UsageRow[], given: Making): Node {
  const own = rows.filter((row) => groupOf(row.label) === group);
  const tokens = sum(own);
  const exact = own.every((row) => row.exact);
  return {
    id: `group:${group}`,
    label: group,
    description: figures(tokens, exact, given.usage),
    tooltip: `**${plain(group)}**\n\n${cost(tokens, exact, given.usage)} in ${plural(own.length, "file")}`,
    spoken: `${group}, ${cost(tokens, exact, given.usage)}`,
    icon: { name: "attach" },
    context: "group",
  };
}

/** `Ancestor: backend`, as the layer is called: in a narrow side bar the figures must fit beside it. */
function shortened(label: string): string {
  return label.replace(/^Ancestor Configuration \((.*)\)$/, "Ancestor: $1");
}

function ownerOf(label: string, byLabel: ReadonlyMap<string, Node[]>): { label: string; children: Node[] } | undefined {
  for (let at = label.indexOf(": "); at > 0; at = label.indexOf(": ", at + 1)) {
    const children = byLabel.get(label.slice(0, at));
    if (children) return { label: label.slice(0, at), children };
  }
  return undefined;
}

function toolNodes(rows: readonly UsageRow[], given: Making): Node[] {
  const id = identities("row:tools");
  const nodes: Node[] = [];
  const byServer = new Map<string, { rows: UsageRow[]; children: Node[] }>();
  const servers = new Map(given.servers?.map((name) => [name.replaceAll(REFUSED, "_"), name]));
  for (const row of rows) {
    const server = serverOf(row.label, servers);
    const node = rowNode(id(row.label), row.label, row, given, false);
    if (server === undefined) {
      nodes.push(node);
      continue;
    }
    const group = byServer.get(server) ?? { rows: [], children: [] };
    group.rows.push(row);
    group.children.push(node);
    byServer.set(server, group);
  }
  return [...[...byServer].map(([name, group]) => serverNode(name, group.rows, group.children, given)), ...nodes];
}

/** The server that a tool's name begins with: `git__log`, `mcp__git__log`, `git.log`, `git:log`, `git/log`. */
function serverOf(tool: string, servers: ReadonlyMap<string, string>): string | undefined {
  const name = tool.startsWith("mcp__") ? tool.slice(5) : tool;
  for (let at = 1; at < name.length; at++) {
    if (!".:/".includes(name.charAt(at)) && !name.startsWith("__", at)) continue;
    const server = servers.get(name.slice(0, at));
    if (server !== undefined) return server;
  }
  return undefined;
}

function serverNode(name: string, rows: readonly UsageRow[], children: readonly Node[], given: Making): Node {
  const tokens = sum(rows);
  const exact = rows.every((row) => row.exact);
  return {
    id: `server:${name}`,
    label: name,
    description: `${figures(tokens, exact, given.usage)} · ${plural(rows.length, "tool")}`,
    figure: figure(tokens, exact),
    tooltip: `**${plain(name)}**\n\n${cost(tokens, exact, given.usage)}`,
    spoken: `server ${name}, ${plural(rows.length, "tool")}, ${cost(tokens, exact, given.usage)}`,
    icon: { name: "server" },
    context: "server",
    subject: { folder: given.folder, server: name },
    children,
  };
}

function rowNode(id: string, label: string, row: UsageRow, given: Making, isRepeated: boolean): Node {
  const { folder, last, made } = given;
  const { available } = given.usage;
  const old = last.get(id);
  const same =
    old?.node.label === label && old.folder === folder && old.available === available && sameRow(old.row, row);
  const where = isRepeated && row.source ? directoryOf(row.source.uri, given) : undefined;
  const node = same && old.where === where ? old.node : newRowNode(id, label, row, given, where);
  made.set(id, { row, available, folder, where, node });
  return node;
}

function sameRow(one: UsageRow, other: UsageRow): boolean {
  return (
    one.label === other.label &&
    one.tokens === other.tokens &&
    one.exact === other.exact &&
    one.message === other.message &&
    sameLocation(one.source, other.source)
  );
}

function newRowNode(id: string, label: string, row: UsageRow, given: Making, where: string | undefined): Node {
  const { usage, folder } = given;
  const says = () => cost(row.tokens, row.exact, usage);
  const node: Node = {
    id,
    label,
    description: [figures(row.tokens, row.exact, usage), ...(where === undefined ? [] : [where])].join(" · "),
    figure: figure(row.tokens, row.exact),
    tooltip: () =>
      `**${plain(row.label)}**\n\n${says()}${row.source ? `\n\n${plain(placeOf(row.source, folder))}` : ""}`,
    spoken: () => `${label}, ${says()}${row.source ? `, from ${placeOf(row.source, folder)}` : ""}`,
    icon: iconOf(row),
    context: row.source ? (row.category === "system" ? "row.source.prompt" : "row.source") : "row",
  };
  if (row.source) return { ...node, command: OPEN, subject: { source: row.source } };
  if (row.message === undefined) return node;
  return { ...node, command: SHOW, subject: { folder, message: row.message } };
}

/** Ids of rows: the same label twice gets a number. */
function identities(prefix: string): (label: string) => string {
  const seen = new Map<string, number>();
  return (label) => {
    const key = prefix === "row:history" ? label.replace(/[\d,]+/g, "#").replace(/messages?/g, "messages") : label;
    const times = seen.get(key) ?? 0;
    seen.set(key, times + 1);
    return times ? `${prefix}/${key}#${times}` : `${prefix}/${key}`;
  };
}

const ICONS = Object.fromEntries(
  ["symbol-method", "note", "comment", "bookmark", "lightbulb", "file", "symbol-string"].map((name) => [
    name,
    { name, colour: "descriptionForeground" },
  ]),
);

function iconOf(row: UsageRow): Icon {
  return ICONS[iconName(row)] ?? { name: "circle-outline" };
}

function iconName(row: UsageRow): string {
  const { category } = row;
  if (category === "tools") return "symbol-method";
  if (category === "history") return row.label.startsWith("names and values") ? "note" : "comment";
  if (category === "memory") return "bookmark";
  if (row.source?.uri.endsWith("/SKILL.md")) return "lightbulb";
  return row.source ? "file" : "symbol-string";
}

/** `≈ 1,234`. */
function figure(tokens: number, exact: boolean): string {
  return `${exact ? "" : "≈ "}${count(tokens)}`;
}

function figures(tokens: number, exact: boolean, usage: TokenUsage): string {
  return `${figure(tokens, exact)} · ${share(tokens, usage)}`;
}

function cost(tokens: number, exact: boolean, usage: TokenUsage): string {
  return `${tokensOf(tokens, exact)}, ${exact ? "exact" : "an estimate"}, ${share(tokens, usage)} of what is available`;
}

function sum(rows: readonly UsageRow[]): number {
  return rows.reduce((total, row) => total + row.tokens, 0);
}
