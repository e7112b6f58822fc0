/**
 * The MCP servers of a folder in the panel: a row for each, and what the window says of them.
 *
 * 1. A row is an entry of a file. Its state is the daemon's, which knows only the entries in force.
 * 2. The menu of a row has what can be done in that state; its click leads to the entry.
 * 3. The window says how many are ready, and what became of one that the user approved and that cannot be used.
 */
import type { McpServer, ServerInfo, ServersResult } from "../protocol";
import { actionsOf, SERVER_ACTIONS, type ServerAction, stateOf, stateText, tokensText } from "../serverState";
import { layerTitle } from "./layerTitle";
import type { Icon, Node } from "./node";
import type { ActionId, Fact, Remark } from "./window";
import { count, nameOf, pathOf, plain, plural, withShortPaths } from "./wording";

export interface ServersGiven {
  /** Every entry of every file. */
  readonly entries: readonly McpServer[];
  /** Absent: not known yet, or an older daemon. */
  readonly states?: ServersResult | undefined;
  /** URI of the folder that is shown. */
  readonly folder: string;
  /** Path of the user's home directory. */
  readonly home?: string | undefined;
}

/** The id of the row above those of the servers. */
export const SERVERS = "servers";

const OPEN = "nexus.panel.openSource";
const COLOURS = { calm: undefined, warning: "list.warningForeground", error: "list.errorForeground" } as const;

/** More servers in trouble than this are one remark. */
const MOST_REMARKS = 2;

/** What helps with a server in trouble, the first that fits. */
const REMEDIES = [
  ["approve", "approveServer"],
  ["login", "loginServer"],
  ["log", "showServerLog"],
  ["start", "startServer"],
] as const satisfies readonly (readonly [ServerAction, ActionId])[];

export function serversNode({ entries, ...given }: ServersGiven): Node {
  const on = entries.filter((server) => server.enabled && server.shadowedBy === undefined).length;
  const says = [...(on === entries.length ? [] : [`${count(on)} of ${count(entries.length)} on`])];
  const text = given.states && summaryOf(given.states);
  if (text !== undefined) says.push(text);
  else if (says.length === 0) says.push(count(on));
  return {
    id: SERVERS,
    label: "MCP servers",
    description: says.join(" · "),
    tooltip: "Servers that the layers name. None is started to show them.",
    spoken: `MCP servers, ${text ?? `${on} of ${entries.length} on`}`,
    icon: { name: "server-environment" },
    context: "servers",
    open: true,
    children: entries.map((entry) =>
      serverNode(
        entry,
        given.states?.servers.find(({ name }) => name === entry.name),
        given,
      ),
    ),
  };
}

/** `info`: what the daemon says of the entry in force of this name. */
function serverNode(entry: McpServer, info: ServerInfo | undefined, given: Omit<ServersGiven, "entries">): Node {
  const origin = layerTitle(entry.origin);
  const off =
    entry.shadowedBy !== undefined ? `overridden by ${layerTitle(entry.shadowedBy)}` : entry.enabled ? "" : "off";
  const isOff = off !== "" || info?.state === "disabled";
  const state = info && !isOff ? troubleText(info, given) : off;
  const says = (info && !isOff ? [state, origin] : [entry.type, origin, state]).filter(Boolean).join(" · ");
  const actions = info && !isOff ? actionsOf(info) : [];
  const isCounted = info?.state === "ready" && !isOff;
  return {
    id: `server:${entry.origin}:${entry.name}`,
    label: entry.name,
    description: says,
    ...(isCounted ? { figure: tokensText(info).replace(/ tokens?$/, "") } : {}),
    tooltip: [
      `**${plain(entry.name)}**`,
      plain(says),
      ...(info && !isOff ? [plain(entry.type)] : []),
      `${plain(pathOf(entry.uri, given.folder))}:${entry.range.start.line + 1}`,
    ].join("\n\n"),
    spoken: `server ${entry.name}, ${says.replaceAll(" · ", ", ")}`,
    icon: isOff ? { name: "circle-slash", colour: "disabledForeground" } : iconOf(info),
    context: isOff ? "server.off" : ["server.on", ...actions].join("."),
    command: OPEN,
    subject: { folder: given.folder, server: entry.name, source: { uri: entry.uri, range: entry.range } },
  };
}

function iconOf(info: ServerInfo | undefined): Icon {
  if (info === undefined) return { name: "server" };
  const { icon, tone } = stateOf(info);
  const colour = COLOURS[tone];
  return { name: icon, ...(colour === undefined ? {} : { colour }) };
}

/** `failed: It ended with 1.`; without trouble, the state with what the tools cost. */
function troubleText(info: ServerInfo, { folder, home }: Omit<ServersGiven, "entries">): string {
  if (info.state !== "failed" || !info.error) return stateText(info);
  return `${stateOf(info).text}: ${withShortPaths(info.error, { folder, home })}`;
}

/** `1 of 3 ready · 1 not approved · ≈ 36 tokens`; undefined: none is on. */
function summaryOf({ servers, tokens }: ServersResult): string | undefined {
  const on = servers.filter(({ state }) => state !== "disabled");
  if (on.length === 0) return undefined;
  const numberOf = (...states: string[]) => on.filter(({ state }) => states.includes(state)).length;
  const waiting = numberOf("unapproved");
  const exact = on.every((server) => server.exact === true);
  return [
    `${count(numberOf("ready"))} of ${count(on.length)} ready`,
    ...(waiting > 0 ? [`${count(waiting)} not approved`] : []),
    ...(tokens > 0 ? [tokensText({ exact, tokens })] : []),
  ].join(" · ");
}

/** How many servers are ready, and what their tools cost; none without a server. */
export function serverFacts(states: ServersResult | undefined): Fact[] {
  const text = states && summaryOf(states);
  if (text === undefined) return [];
  return [{ label: "MCP servers", text, tone: "plain", action: { id: "showServers", label: "Show" } }];
}

/**
 * Servers that the user approved and that cannot be used, each with what helps; of many, one remark. What cannot even be
 * started, such as a program that is not installed, nobody has approved: its row says so.
 */
export function serverRemarks(
  states: ServersResult | undefined,
  place: { folder: string; home?: string | undefined },
): Remark[] {
  const troubled = states?.servers.filter((one) => one.hash !== undefined && stateOf(one).tone !== "calm") ?? [];
  if (troubled.length <= MOST_REMARKS) return troubled.map((server) => remarkOf(server, place));
  const tone = troubled.some((server) => stateOf(server).tone === "error") ? "error" : "warning";
  const text = `${plural(troubled.length, "MCP server")} cannot be used: ${troubled.map(({ name }) => name).join(", ")}.`;
  return [{ tone, text, action: { id: "showServers", label: "Show" } }];
}

function remarkOf(server: ServerInfo, place: { folder: string; home?: string | undefined }): Remark {
  const { name, uri, range } = server;
  const { line } = range.start;
  const text = troubleText(server, place);
  const remedy = REMEDIES.find(([action]) => SERVER_ACTIONS[action].fits(server));
  return {
    tone: stateOf(server).tone === "error" ? "error" : "warning",
    text: `MCP server ${name}: ${text}${/[.!?]$/.test(text) ? "" : "."}`,
    source: { label: `${nameOf(uri)}:${line + 1}`, uri, line },
    ...(remedy ? { action: { id: remedy[1], label: SERVER_ACTIONS[remedy[0]].title, server: name } } : {}),
  };
}
