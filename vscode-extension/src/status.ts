/**
 * The status bar item: what the next request costs.
 *
 * It shows the focused conversation as the daemon counts it. Changes of `main` come with their figures; for others the
 * daemon is asked, once for what happens within a moment.
 */
import * as vscode from "vscode";
import { about, briefly, byCategory, exactly, percentText } from "./figures";
import { isFolder, nameOf } from "./focus";
import type { Focus, Nexus, ServerState } from "./nexus";
import { NexusError } from "./nexus";
import type { TokenUsage } from "./protocol";

const SETTLE_MS = 40;
const COMMANDS = ["nexus.openPanel", "nexus.showPrompt", "nexus.compact", "nexus.switchSession", "nexus.showRequest"];

/** What the item says; a value, so that it can be tested. */
export interface StatusText {
  readonly text: string;
  readonly spoken: string;
  readonly colour: "statusBarItem.warningBackground" | "statusBarItem.errorBackground" | undefined;
  readonly command: string;
}

export interface Thresholds {
  /** In percent of what is available. */
  readonly warnAt: number;
  readonly errorAt: number;
}

export function usageText(usage: TokenUsage, thresholds: Thresholds): StatusText {
  const of = usage.limitKnown ? briefly(usage.available) : `${briefly(usage.available)}?`;
  const share = percentText(usage.percent);
  const spokenAbout = usage.counter.exact ? "" : "about ";
  return {
    text: `$(layers) ${about(usage)}${briefly(usage.total)} / ${of} ${share}`,
    spoken: `Nexus: ${spokenAbout}${exactly(usage.total)} of ${exactly(usage.available)} tokens, ${share}${usage.over ? ", too much" : ""}`,
    colour:
      usage.over || usage.percent >= thresholds.errorAt
        ? "statusBarItem.errorBackground"
        : usage.percent >= thresholds.warnAt
          ? "statusBarItem.warningBackground"
          : undefined,
    command: "nexus.openPanel",
  };
}

/** What is said while there are no figures; none where there is nothing to say. */
export function stateText(state: ServerState, detail: string): StatusText | undefined {
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
    case "failed":
      return item("error", "Nexus", "nexus.openPanel", "statusBarItem.errorBackground");
    case "ready":
    case "stopped":
      return undefined;
  }
}

/** The tooltip: Markdown. */
export function usageTable(
  usage: TokenUsage,
  place: { folder: string; session: string; agent?: string | undefined },
): string {
  const who = `${plain(place.folder)} · ${place.agent ? `as ${plain(place.agent)}` : plain(place.session)}`;
  const rows = byCategory(usage.rows).map(
    (row) => `| ${row.name} | ${row.exact ? "" : "≈ "}${exactly(row.tokens)} | ${shareOf(row.tokens, usage.total)} |`,
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
    "",
    `**${percentText(usage.percent)}** of ${exactly(usage.available)} available tokens`,
    "",
    `${plain(usage.model || "no model is set")} · window ${exactly(usage.limit)}${usage.limitKnown ? "" : " (a guess)"}, ${exactly(usage.reserved)} kept free · ${counted}`,
    "",
    ...(usage.over ? ["**More than fits:** what is oldest is cut, or compact the conversation.", ""] : []),
    "[Panel](command:nexus.openPanel) · [Prompt](command:nexus.showPrompt) · [Next request](command:nexus.showRequest) · [Conversation](command:nexus.switchSession) · [Compact](command:nexus.compact)",
  ].join("\n");
}

export function registerStatus(_context: vscode.ExtensionContext, nexus: Nexus, focus: Focus): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("nexus.status", vscode.StatusBarAlignment.Right, 90);
  item.name = "Nexus";
  let asking: vscode.CancellationTokenSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function show(status: StatusText | undefined, tooltip: vscode.MarkdownString | string): void {
    const wanted = vscode.workspace.getConfiguration("nexus").get<boolean>("statusBar.enabled", true);
    if (!status || !wanted) {
      item.hide();
      return;
    }
    item.text = status.text;
    item.accessibilityInformation = { label: status.spoken, role: "button" };
    item.backgroundColor = status.colour && new vscode.ThemeColor(status.colour);
    item.command = status.command;
    item.tooltip = tooltip;
    item.show();
  }

  function showUsage(usage: TokenUsage): void {
    const folder = focus.folder;
    if (!folder) {
      item.hide();
      return;
    }
    const place = { folder: nameOf(folder), session: focus.session, agent: focus.agent };
    const tooltip = new vscode.MarkdownString(usageTable(usage, place), true);
    tooltip.isTrusted = { enabledCommands: COMMANDS };
    show(usageText(usage, thresholds()), tooltip);
  }

  async function ask(): Promise<void> {
    asking?.cancel();
    const folder = focus.folder;
    if (nexus.state !== "ready" || !folder) return show(stateText(nexus.state, nexus.detail), nexus.detail);
    const mine = new vscode.CancellationTokenSource();
    asking = mine;
    // an agent has a conversation of its own: the daemon knows which
    const who = focus.agent ? { agent: focus.agent } : { session: focus.session };
    const params = { workspaceFolder: folder.toString(), ...who };
    try {
      const usage = await nexus.request("nexus/context/usage", params, mine.token);
      if (asking === mine) showUsage(usage);
    } catch (error) {
      if (asking === mine) showTrouble(error);
    }
  }

  function showTrouble(error: unknown): void {
    if (error instanceof NexusError && (error.code === "cancelled" || error.code === "not-ready")) return;
    const message = error instanceof Error ? error.message : String(error);
    show(
      { text: "$(warning) Nexus", spoken: `Nexus: ${message}`, colour: undefined, command: "nexus.openPanel" },
      message,
    );
  }

  function soon(): void {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), SETTLE_MS);
  }

  const listening = [
    nexus.onDidChangeState(() => void ask()),
    focus.onDidChange(soon),
    nexus.onDidChangeContext((change) => {
      if (!isFolder(change.workspaceFolder, focus.folder)) return;
      if (focus.session !== "main" || focus.agent) return soon();
      asking?.cancel();
      asking = undefined;
      showUsage(change.usage);
    }),
    nexus.onDidChangeSession((change) => {
      if (isFolder(change.workspaceFolder, focus.folder) && change.session === focus.session) soon();
    }),
    nexus.onDidChangeAgent((change) => {
      if (change.agentId === focus.agent) soon();
    }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("nexus.statusBar")) soon();
    }),
  ];
  void ask();
  return new vscode.Disposable(() => {
    clearTimeout(timer);
    asking?.cancel();
    for (const one of [...listening, item]) one.dispose();
  });
}

function thresholds(): Thresholds {
  const settings = vscode.workspace.getConfiguration("nexus.statusBar");
  return { warnAt: settings.get<number>("warnAt", 75), errorAt: settings.get<number>("errorAt", 90) };
}

function shareOf(part: number, whole: number): string {
  return whole > 0 ? `${((part / whole) * 100).toFixed(0)} %` : "";
}

function plain(text: string): string {
  return text.replace(/[\\`*_{}[\]()#|<>$]/g, "\\$&");
}
