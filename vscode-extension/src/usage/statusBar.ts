/**
 * The status bar item: what the next request costs in the view that the panel shows.
 *
 * It names the assistant whose view that is, or the agent that is viewed.
 */
import * as vscode from "vscode";
import { titleOf } from "../focus";
import { type Focus, isOnItsWay, type NextTurn, type Nexus, type ServerState } from "../nexus";
import type { TokenUsage } from "../protocol";
import { OBSTACLE_TITLES, type Obstacle, REMEDIES } from "../server/remedies";
import { type Cost, focusedUsage } from ".";
import { about, briefly, correctionText, errorText, exactly, percentText, totalOf } from "./figures";
import { byPart, styleOf } from "./parts";

const COMMANDS = [
  "nexus.openPanel",
  "nexus.chooseView",
  "nexus.showPrompt",
  "nexus.compact",
  "nexus.switchSession",
  "nexus.showRequest",
  "nexus.pickModel",
];

/** Links of the tooltip that only Nexus's own conversations have. */
const OF_NEXUS =
  " · [Next request](command:nexus.showRequest) · [Conversation](command:nexus.switchSession) · [Model](command:nexus.pickModel) · [Compact](command:nexus.compact)";

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

/** Whose figures they are; neither: those of Nexus's own conversation. */
export interface Viewed {
  readonly agent?: string | undefined;
  /** The title of an assistant. */
  readonly assistant?: string | undefined;
}

export function usageText(usage: TokenUsage, thresholds: Thresholds, viewed: Viewed = {}): StatusText {
  const { agent, assistant } = viewed;
  const total = totalOf(usage);
  const share = percentText(total.percent);
  const icon = agent === undefined ? (assistant === undefined ? "$(layers) " : "") : "$(eye) ";
  return {
    text: `${icon}${figuresText(usage, viewed)}`,
    spoken: `${nameOf(viewed)}: ${spokenFigures(usage)} tokens, ${share}${usage.over ? ", too much" : ""}`,
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
export function staleText(usage: TokenUsage, detail: string, viewed: Viewed = {}): StatusText {
  return {
    text: `$(sync~spin) ${figuresText(usage, viewed)}`,
    spoken: `${nameOf(viewed)}: ${detail}. Before: ${spokenFigures(usage)} tokens`,
    stale: true,
    colour: undefined,
    command: "nexus.openPanel",
  };
}

function figuresText(usage: TokenUsage, { agent, assistant }: Viewed): string {
  const of = usage.limitKnown ? briefly(usage.available) : `${briefly(usage.available)}?`;
  const { tokens, exact, percent } = totalOf(usage);
  const about = exact ? "" : "≈ ";
  if (assistant !== undefined) {
    return `${bare(assistant)}: ${about}${exactly(tokens)} of ${of} tokens, ${percentText(percent)}`;
  }
  return `${agent === undefined ? "" : `${bare(agent)}: `}${about}${briefly(tokens)} / ${of} ${percentText(percent)}`;
}

function spokenFigures(usage: TokenUsage): string {
  const { tokens, exact } = totalOf(usage);
  return `${exact ? "" : "about "}${exactly(tokens)} of ${exactly(usage.available)}`;
}

function nameOf({ agent, assistant }: Viewed): string {
  return assistant ?? (agent === undefined ? "Nexus" : `Nexus, as ${agent}`);
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
  place: Viewed & { folder: string; session: string; reason?: string | undefined },
): string {
  const { agent, assistant, reason } = place;
  const total = totalOf(usage);
  const corrected = correctionText(usage);
  const who = plain(assistant ?? (agent ? `as ${agent}` : place.session));
  const rows = byPart(usage).map(
    ({ part, tokens, exact }) =>
      `| ${plain(styleOf(assistant !== undefined && part === "nexus" ? "program" : part).title)} | ${exact ? "" : "≈ "}${exactly(tokens)} | ${shareOf(tokens, usage.total)} |`,
  );
  const counted = usage.counter.exact
    ? `counted with ${plain(usage.counter.name)}`
    : `estimated (${plain(usage.counter.name)})`;
  return [
    `**${plain(place.folder)} · ${who}**${reason ? `: ${plain(reason)}` : ""}`,
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
    ...(usage.over && assistant === undefined
      ? ["**More than fits:** what is oldest is cut, or compact the conversation.", ""]
      : []),
    `[Panel](command:nexus.openPanel) · [View](command:nexus.chooseView) · [Prompt](command:nexus.showPrompt)${assistant === undefined ? OF_NEXUS : ""}`,
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
    const { agent, assistant } = scope;
    const viewed = { agent, assistant: assistant && titleOf(focus, assistant) };
    const reason = agent === undefined ? focus.view?.reason : undefined;
    const about = { ...viewed, folder: scope.folder.name, session: scope.session, reason };
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
    cost.setVisible(nexus.state === "ready" && focus.view !== undefined && isWanted());
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
