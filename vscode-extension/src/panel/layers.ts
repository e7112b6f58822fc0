/**
 * The layers of a folder as a tree: what each contributes, what was left out and why, the MCP servers.
 *
 * 1. Lowest layer first, as the daemon lists them; a later one wins.
 * 2. A layer's tokens are the daemon's: those of its files in the prompt that is shown, with what they import.
 * 3. Files that are missing show only where a layer has no other; the tooltip names them.
 * 4. A file that is stale, invalid, unreadable or too large is marked; so is one with errors or warnings.
 * 5. Files of one name say their directory, too.
 */
import type {
  AssistantMcpServer,
  Fragment,
  Layer,
  LayerFile,
  LayersResult,
  McpServer,
  Problem,
  ServersResult,
} from "../protocol";
import { layerTitle } from "./layerTitle";
import type { Icon, Node } from "./node";
import { SERVERS, serversNode } from "./servers";
import { count, directoryOf, nameOf, pathOf, plain, plural, repeated, tokensOf } from "./wording";

const OPEN = "nexus.panel.openSource";
const TOP = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };

export interface LayersGiven {
  readonly layers: LayersResult;
  /** URI of the folder that is shown. */
  readonly folder: string;
  /** Path of the user's home directory. */
  readonly home?: string;
  /** Of the prompt, for what the files import. */
  readonly fragments?: readonly Fragment[];
  /** Every entry of every file of MCP servers. */
  readonly servers?: readonly McpServer[];
  /** What became of the entries in force. */
  readonly serverStates?: ServersResult | undefined;
}

const STATUS: Readonly<Record<string, { icon: string; colour: string; says: string }>> = {
  stale: { icon: "warning", colour: "list.warningForeground", says: "broken: the last good version is in force" },
  invalid: { icon: "error", colour: "list.errorForeground", says: "broken, and not in force" },
  unreadable: { icon: "error", colour: "list.errorForeground", says: "cannot be read" },
  "too-large": { icon: "error", colour: "list.errorForeground", says: "too large to be read" },
  shadowed: { icon: "circle-slash", colour: "disabledForeground", says: "a nearer layer has one" },
  conditional: { icon: "filter", colour: "descriptionForeground", says: "sent with messages about some files" },
  excluded: { icon: "circle-slash", colour: "disabledForeground", says: "left out by the settings" },
  missing: { icon: "circle-outline", colour: "disabledForeground", says: "not there" },
};

/** The layer of what Nexus brings: nobody looks for its files on the disk. */
const SHIPPED = "defaults";

/** What tells a file from others of its name; nothing where there are none. */
type Where = (layer: Layer, name: string, uri: string) => string[];

const KINDS: Readonly<Record<string, string>> = {
  instructions: "book",
  config: "gear",
  mcp: "plug",
  readme: "info",
  skill: "lightbulb",
};

export function layerNodes(given: LayersGiven): Node[] {
  const problems = new Map<string, Problem[]>();
  for (const problem of given.layers.problems) {
    const known = problems.get(problem.uri);
    if (known) known.push(problem);
    else problems.set(problem.uri, [problem]);
  }
  const files = given.layers.layers.flatMap(shownFiles);
  const imported = given.layers.layers.flatMap((layer) => [...importsOf(layer, given).keys()]);
  const isRepeated = repeated([...files.map(fileName), ...imported.map((uri) => nameOf(uri))]);
  const where: Where = (layer, name, uri) => {
    if (!isRepeated(name)) return [];
    return [layer.name === SHIPPED ? "shipped" : directoryOf(uri, given)];
  };
  const nodes = given.layers.layers.map((layer) => layerNode(layer, given, problems, where));
  const servers = given.servers ?? [];
  if (servers.length) nodes.push(serversNode({ ...given, entries: servers, states: given.serverStates }));
  if (given.layers.servers?.length) nodes.push(assistantServersNode(given.layers.servers, given));
  if (given.layers.skipped.length) nodes.push(skippedNode(given));
  return nodes;
}

function layerNode(layer: Layer, given: LayersGiven, problems: ReadonlyMap<string, Problem[]>, where: Where): Node {
  const present = layer.files.filter((file) => file.status !== "missing");
  const missing = layer.files.filter((file) => file.status === "missing");
  const imports = importNodes(layer, given, where);
  const tokens = layerTokens(layer, given);
  const title = layerTitle(layer.name);
  const says = present.length ? (tokens ? cost(tokens, given) : "no tokens") : "nothing there";
  const absent = present.length && missing.length ? missing.map((file) => nameOf(file.uri)).join(", ") : "";
  return {
    id: given.layers.layers.some((one) => one !== layer && one.name === layer.name)
      ? `layer:${layer.name}:${layer.path}`
      : `layer:${layer.name}`,
    label: title,
    description: says,
    ...(tokens ? { figure: figure(tokens, given) } : {}),
    tooltip: [`**${plain(title)}**`, plain(layer.path), says, ...(absent ? [`Not there: ${plain(absent)}`] : [])].join(
      "\n\n",
    ),
    spoken: `layer ${title}, ${says}`,
    icon: { name: present.length ? "layers" : "circle-outline" },
    context: `layer.${layer.name.split(":")[0]}`,
    open: layer.name === "local" || layer.name === "project",
    children: [
      ...shownFiles(layer).map((file) => fileNode(layer, file, given, problems.get(file.uri) ?? [], where)),
      ...imports,
    ],
  };
}

/** `≈ 1,234 tokens`, the mark where the daemon estimates. */
function cost(tokens: number, given: LayersGiven): string {
  return tokensOf(tokens, given.layers.counter?.exact ?? true);
}

/** `≈ 1,234`. */
function figure(tokens: number, given: LayersGiven): string {
  return `${(given.layers.counter?.exact ?? true) ? "" : "≈ "}${count(tokens)}`;
}

/** The files of a layer that are there; of one without any, those that could be. */
function shownFiles(layer: Layer): readonly LayerFile[] {
  const present = layer.files.filter((file) => file.status !== "missing");
  return present.length ? present : layer.files;
}

function fileName(file: LayerFile): string {
  return file.kind === "skill" ? nameOf(file.uri.replace(/\/[^/]*$/, "")) : nameOf(file.uri);
}

function layerTokens(layer: Layer, given: LayersGiven): number {
  if (layer.tokens !== undefined) return layer.tokens;
  if (!given.fragments) return layer.files.reduce((total, file) => total + (file.tokens ?? 0), 0);
  return given.fragments.reduce((total, part) => total + (part.layer === layer.name ? part.tokens : 0), 0);
}

function fileNode(layer: Layer, file: LayerFile, given: LayersGiven, problems: readonly Problem[], where: Where): Node {
  const name = fileName(file);
  const status = STATUS[file.status];
  const worst = problems.reduce((least, problem) => Math.min(least, problem.severity), 4);
  const wrong = problems.filter((problem) => problem.severity <= 2).length;
  const parts = [
    ...(file.tokens === undefined ? [] : [cost(file.tokens, given)]),
    ...(status ? [stateOf(file)] : []),
    ...(wrong ? [plural(wrong, "problem")] : []),
    ...where(layer, name, file.uri),
  ];
  const first = problems.find((problem) => problem.severity === worst);
  return {
    id: `file:${layer.name}:${file.kind}:${file.uri}`,
    label: name,
    ...(parts.length ? { description: parts.join(" · ") } : {}),
    ...narrowFigure(file, wrong, given),
    tooltip: [
      `**${plain(pathOf(file.uri, given.folder))}**`,
      `${plain(file.kind)}${status && file.reason === undefined ? `: ${status.says}` : ""}${file.appliesTo === undefined ? "" : ` (${plain(file.appliesTo)})`}${file.tokens === undefined ? "" : `, ${cost(file.tokens, given)}`}`,
      ...(file.reason === undefined ? [] : [plain(file.reason)]),
      ...problems
        .slice(0, 5)
        .map((problem) => `$(${problem.severity === 1 ? "error" : "warning"}) ${plain(problem.message)}`),
    ].join("\n\n"),
    spoken: [name, file.kind, ...(status ? [status.says] : []), ...parts.filter((part) => part !== stateOf(file))].join(
      ", ",
    ),
    icon: fileIcon(file, wrong ? worst : 4),
    context: `file.${file.status}${file.tokens === undefined ? "" : ".prompt"}`,
    ...(file.status === "missing"
      ? {}
      : { command: OPEN, subject: { source: { uri: file.uri, range: first?.range ?? TOP } } }),
  };
}

/** What a narrow view shows of a file first: what is wrong with it, else its tokens. */
function narrowFigure(file: LayerFile, wrong: number, given: LayersGiven): { figure?: string } {
  if (wrong > 0 && STATUS[file.status]) return { figure: `${stateOf(file)} · ${count(wrong)}` };
  return file.tokens === undefined ? {} : { figure: figure(file.tokens, given) };
}

/** A file's status, for people; of one for some files only, for which. */
function stateOf(file: LayerFile): string {
  if (file.reason !== undefined && file.status === "conditional") return "later";
  return file.appliesTo === undefined ? file.status : `for ${file.appliesTo}`;
}

function fileIcon(file: LayerFile, worst: number): Icon {
  const status = STATUS[file.status];
  if (status) return { name: status.icon, colour: status.colour };
  if (worst === 1) return { name: "error", colour: "list.errorForeground" };
  if (worst === 2) return { name: "warning", colour: "list.warningForeground" };
  return { name: KINDS[file.kind] ?? "file" };
}

/** Files that stand in a layer's part of the prompt and are not the layer's own, with their tokens. */
function importsOf(layer: Layer, given: LayersGiven): ReadonlyMap<string, number> {
  const own = new Set(given.layers.layers.flatMap((one) => one.files.map((file) => file.uri)));
  const tokens = new Map<string, number>();
  for (const part of given.fragments ?? []) {
    if (part.layer !== layer.name || !part.source || own.has(part.source.uri)) continue;
    tokens.set(part.source.uri, (tokens.get(part.source.uri) ?? 0) + part.tokens);
  }
  return tokens;
}

function importNodes(layer: Layer, given: LayersGiven, where: Where): Node[] {
  return [...importsOf(layer, given)].map(([uri, own]) => ({
    id: `import:${layer.name}:${uri}`,
    label: nameOf(uri),
    description: [cost(own, given), "imported", ...where(layer, nameOf(uri), uri)].join(" · "),
    figure: figure(own, given),
    tooltip: `**${plain(pathOf(uri, given.folder))}**\n\nimported, ${cost(own, given)}`,
    spoken: [nameOf(uri), "imported", cost(own, given), ...where(layer, nameOf(uri), uri)].join(", "),
    icon: { name: "references" },
    context: "file.imported.prompt",
    command: OPEN,
    subject: { source: { uri, range: TOP } },
  }));
}

const STARTS: Readonly<Record<string, string>> = {
  starts: "starts with the assistant",
  asks: "waits for approval",
  off: "off",
};

/** The MCP servers in the settings of another assistant. */
function assistantServersNode(servers: readonly AssistantMcpServer[], given: LayersGiven): Node {
  return {
    id: SERVERS,
    label: "MCP servers",
    description: count(servers.length),
    tooltip:
      "Servers in the assistant's settings. None is started to show them, so the cost of their tools is not known.",
    spoken: `MCP servers, ${servers.length}`,
    icon: { name: "server-environment" },
    context: "servers",
    open: true,
    children: servers.map((server) => {
      const state = STARTS[server.start] ?? server.start;
      const says = [state, layerTitle(server.scope)].join(" · ");
      const reason = server.reason === undefined ? [] : [plain(server.reason)];
      return {
        id: `server:${server.scope}:${server.uri}:${server.name}`,
        label: server.name,
        description: says,
        tooltip: [`**${plain(server.name)}**`, plain(says), ...reason, plain(pathOf(server.uri, given.folder))].join(
          "\n\n",
        ),
        spoken: `server ${server.name}, ${says}`,
        icon: server.start === "off" ? { name: "circle-slash", colour: "disabledForeground" } : { name: "server" },
        context: server.start === "off" ? "server.off" : "server.on",
        command: OPEN,
        subject: { source: { uri: server.uri, range: TOP } },
      };
    }),
  };
}

function skippedNode(given: LayersGiven): Node {
  const { skipped } = given.layers;
  const isRepeated = repeated(skipped.map(({ path }) => nameOf(path)));
  return {
    id: "skipped",
    label: "Left out",
    description: count(skipped.length),
    tooltip: "What could have been a layer and is not.",
    spoken: `left out, ${skipped.length}`,
    icon: { name: "circle-slash" },
    context: "skipped",
    children: skipped.map(({ path, reason }, index) => ({
      id: `skipped:${index}:${path}`,
      label: nameOf(path),
      description: isRepeated(nameOf(path)) ? `${directoryOf(path, given)} · ${reason}` : reason,
      tooltip: `**${plain(path)}**\n\n${plain(reason)}`,
      spoken: `${path}, left out: ${reason}`,
      icon: { name: "circle-slash", colour: "disabledForeground" },
      context: "skipped.layer",
    })),
  };
}
