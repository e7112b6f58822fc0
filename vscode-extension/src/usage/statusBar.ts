/**
 * The status bar item: what the next request costs.
 *
 * It follows what the panel shows: the focused conversation, or the agent that is viewed, which it names.
 */
import * as vscode from "vscode";
import { type Focus, isOnItsWay, type NextTurn, type Nexus, type ServerState } from "../nexus";
import type { TokenUsage } from "../protocol";
import { OBSTACLE_TITLES, type Obstacle, REMEDIES } from "../server/remedies";
import { type Cost, focusedUsage } from ".";
import { about, briefly, correctionText, errorText, exactly, percentText, totalOf } from "./figures";
import { byPart, styleOf } from "./parts";

const COMMANDS = [
  "nexus.openPanel",
  "nexus.showPrompt",
  "nexus.compact",
  "nexus.switchSession",
  "nexus.showRequest",
  "nexus.pickModel",
];

/** What the item says; a value, so that it can be tested. */
export interface StatusText {
  readonly text: string;
  readonly spoken: string;
  /** Whether the figures are from before a restart. */
  readonly stale?: boolean;
  readonly colour: "statusBarItem.warningBackground" | "statusBarItem.errorBackground" | undefined;
  readonly command: string;
}

export interface Thresholds {
  /** In percent of what is available. */
  readonly warnAt: number;
  readonly errorAt: number;
}

export function usageText(usage: TokenUsage, thresholds: Thresholds, agent?: string): StatusText {
  const of = usage.limitKnown ? briefly(usage.available) : `${briefly(usage.available)}?`;
  const total = totalOf(usage);
  const share = percentText(total.percent);
  const spokenAbout = total.exact ? "" : "about ";
  return {
    text: `${agent === undefined ? "$(layers)" : `$(eye) ${bare(agent)}:`} ${total.exact ? "" : "≈ "}${briefly(total.tokens)} / ${of} ${share}`,
    spoken: `Nexus${agent === undefined ? "" : `, as ${agent}`}: ${spokenAbout}${exactly(total.tokens)} of ${exactly(usage.available)} tokens, ${share}${usage.over ? ", too much" : ""}`,
    colour:
      usage.over || total.percent >= thresholds.errorAt
        ? "statusBarItem.errorBackground"
        : total.percent >= thresholds.warnAt
          ? "statusBarItem.warningBackground"
          : undefined,
    command: "nexus.openPanel",
  };
}

/** The figures of the server before, while the next one is on its way. */
export function staleText(usage: TokenUsage, detail: string, agent?: string): StatusText {
  const of = usage.limitKnown ? briefly(usage.available) : `${briefly(usage.available)}?`;
  const total = totalOf(usage);
  const before = `${total.exact ? "" : "about "}${exactly(total.tokens)} of ${exactly(usage.available)}`;
  return {
    text: `$(sync~spin) ${agent === undefined ? "" : `${bare(agent)}: `}${total.exact ? "" : "≈ "}${briefly(total.tokens)} / ${of} ${percentText(total.percent)}`,
    spoken: `Nexus${agent === undefined ? "" : `, as ${agent}`}: ${detail}. Before: ${before} tokens`,
    stale: true,
    colour: undefined,
    command: "nexus.openPanel",
  };
}

/** What is said while there are no figures; none where there is nothing to say. */
export function stateText(state: ServerState, detail: string, obstacle?: Obstacle): StatusText | undefined {
  const item = (icon: string, text: string, command: string, colour?: StatusText["colour"]): StatusText => ({
    text: `$(${icon}) ${text}`,
    spoken: `${text}${detail ? `: ${detail}` : ""}`,
    colour,
    command,
  });
  switch (state) {
    case "finding":
    case "starting":
      return item("loading~spin", "Nexus", "nexus.showOutput");
    case "installing":
      return item("loading~spin", "Nexus: installing", "nexus.showOutput");
    case "failed": {
      const text = obstacle ? `Nexus: ${OBSTACLE_TITLES[obstacle.kind].brief}` : "Nexus";
      return item("error", text, "nexus.openPanel", "statusBarItem.errorBackground");
    }
    case "stopped":
      return obstacle && item("shield", `Nexus: ${OBSTACLE_TITLES[obstacle.kind].brief}`, "nexus.openPanel");
    case "ready":
      return undefined;
  }
}

/** The tooltip while there is no server: why, and each way out as a link. Markdown. */
export function obstacleTable({ kind, remedies }: Obstacle, detail: string): string {
  const links = remedies.map((id) => {
    const { title, command, args } = REMEDIES[id];
    return `[${title}](command:${command}${args ? `?${encodeURIComponent(JSON.stringify(args))}` : ""})`;
  });
  return [`**${OBSTACLE_TITLES[kind].title}**`, plain(detail), links.join(" · ")].join("\n\n");
}

/** The tooltip: Markdown. */
export function usageTable(
  usage: TokenUsage,
  place: { folder: string; session: string; agent?: string | undefined },
): string {
  const total = totalOf(usage);
  const corrected = correctionText(usage);
  const who = `${plain(place.folder)} · ${place.agent ? `as ${plain(place.agent)}` : plain(place.session)}`;
  const rows = byPart(usage).map(
    ({ part, tokens, exact }) =>
      `| ${plain(styleOf(part).title)} | ${exact ? "" : "≈ "}${exactly(tokens)} | ${shareOf(tokens, usage.total)} |`,
  );
  const counted = usage.counter.exact
    ? `counted with ${plain(usage.counter.name)}`
    : `estimated (${plain(usage.counter.name)})`;
  return [
    `**${who}**`,
    "",
    "| | Tokens | Share |",
    "|:--|--:|--:|",
    ...rows,
    `| **Total** | **${about(usage)}${exactly(usage.total)}** | |`,
    ...(corrected === undefined
      ? []
      : [`| **Corrected** | **≈ ${exactly(total.tokens)}** | ${errorText(usage) ?? ""} |`]),
    "",
    `**${percentText(total.percent)}** of ${exactly(usage.available)} available tokens${corrected === undefined ? "" : `, ${corrected}`}`,
    "",
    `${plain(usage.model || "no model yet")} · window ${exactly(usage.limit)}${usage.limitKnown ? "" : " (a guess)"}, ${exactly(usage.reserved)} kept free · ${counted}`,
    "",
    ...cacheLines(usage),
    ...(usage.over ? ["**More than fits:** what is oldest is cut, or compact the conversation.", ""] : []),
    "[Panel](command:nexus.openPanel) · [Prompt](command:nexus.showPrompt) · [Next request](command:nexus.showRequest) · [Conversation](command:nexus.switchSession) · [Model](command:nexus.pickModel) · [Compact](command:nexus.compact)",
  ].join("\n");
}

export function registerStatus(nexus: Nexus, focus: Focus, nextTurn: NextTurn): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("nexus.status", vscode.StatusBarAlignment.Right, 90);
  item.name = "Nexus";
  const costs = focusedUsage(nexus, focus, nextTurn, update);
  const { cost } = costs;

  function say(status: StatusText | undefined, tooltip: vscode.MarkdownString | string): void {
    if (!status || !isWanted()) {
      item.hide();
      return;
    }
    item.text = status.text;
    item.accessibilityInformation = { label: status.spoken, role: "button" };
    item.backgroundColor = status.colour && new vscode.ThemeColor(status.colour);
    item.color = status.stale ? new vscode.ThemeColor("disabledForeground") : undefined;
    item.command = status.command;
    item.tooltip = tooltip;
    item.show();
  }

  function sayCost({ scope, usage }: Cost, detail?: string): void {
    const viewed = scope.assistant ?? scope.agent;
    const about = { folder: scope.folder.name, session: scope.session, agent: viewed };
    const before = detail === undefined ? "" : `$(sync~spin) ${plain(detail)}. The figures are from before.\n\n`;
    const tooltip = new vscode.MarkdownString(before + usageTable(usage, about), true);
    tooltip.isTrusted = { enabledCommands: COMMANDS };
    say(detail === undefined ? usageText(usage, thresholds(), viewed) : staleText(usage, detail, viewed), tooltip);
  }

  function update(): void {
    if (isOnItsWay(nexus.state) && focus.folder && cost.value) sayCost(cost.value, nexus.detail);
    else if (nexus.state !== "ready") say(stateText(nexus.state, nexus.detail, nexus.obstacle), stateTooltip(nexus));
    else if (!focus.folder) item.hide();
    else if (cost.stale)
      return; // what is there stays until the answer
    else if (cost.trouble !== undefined) say(troubleText(cost.trouble), cost.trouble);
    else if (cost.value) sayCost(cost.value);
  }

  function look(): void {
    cost.setVisible(nexus.state === "ready" && focus.folder !== undefined && isWanted());
    update();
  }

  const listening = [
    nexus.onDidChangeState(look),
    focus.onDidChange(look),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("nexus.statusBar")) look();
    }),
  ];
  look();
  return vscode.Disposable.from(costs, ...listening, item);
}

function stateTooltip({ obstacle, detail }: Nexus): vscode.MarkdownString | string {
  if (!obstacle) return detail;
  const tooltip = new vscode.MarkdownString(obstacleTable(obstacle, detail));
  tooltip.isTrusted = { enabledCommands: obstacle.remedies.map((id) => REMEDIES[id].command) };
  return tooltip;
}

function troubleText(message: string): StatusText {
  return { text: "$(warning) Nexus", spoken: `Nexus: ${message}`, colour: undefined, command: "nexus.openPanel" };
}

function isWanted(): boolean {
  return vscode.workspace.getConfiguration("nexus").get<boolean>("statusBar.enabled", true);
}

function thresholds(): Thresholds {
  const settings = vscode.workspace.getConfiguration("nexus.statusBar");
  return { warnAt: settings.get<number>("warnAt", 75), errorAt: settings.get<number>("errorAt", 90) };
}

/** What the last edit broke of what a provider's cache holds. */
function cacheLines({ cache }: TokenUsage): string[] {
  const broke = cache?.broke;
  if (!broke) return [];
  return [`$(warning) Cache broken: ${plain(broke.label)}, ${exactly(broke.tokens)} tokens are read again`, ""];
}

/** A name without what the status bar shows as icons. */
function bare(name: string): string {
  return name.replaceAll("$(", "$ (");
}

function shareOf(part: number, whole: number): string {
  return whole > 0 ? `${((part / whole) * 100).toFixed(0)} %` : "";
}

function plain(text: string): string {
  return text.replace(/[\\`*_{}[\]()#|<>$]/g, "\\$&");
}
