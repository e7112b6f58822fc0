/**
 * "Pick Model": the model that a conversation goes on with, before any turn or between two.
 *
 * 1. What is picked is what the chat would say with a turn: the model, its window, which tools of Nexus it is offered.
 *    The daemon keeps it for the conversation and its folder; the next turn in the chat says anew.
 * 2. "Model of the settings" takes it back.
 * 3. Where the settings name a provider of their own, there is nothing to pick: @nexus asks that one's model.
 */
import * as vscode from "vscode";
import { toolSwitches, windowOf } from "../chat/lm";
import type { EffectiveResult, PickParams } from "../protocol";
import { exactly } from "../usage/figures";
import { pick, Silent, type Subject, subjectOf, type Tools } from "./commandContext";
import { meant } from "./sessions";

type Commands = Record<string, (...args: unknown[]) => Promise<unknown>>;
type Choice = Omit<PickParams, "workspaceFolder" | "session">;

const NAME = "/provider/name";
const MODEL = "/provider/model";
/** The layer that the daemon shows a picked model's settings to come from. */
const PICKED = "picked";

export function modelCommands(tools: Tools): Commands {
  return { "nexus.pickModel": (arg) => pickModel(tools, subjectOf(arg)) };
}

async function pickModel(tools: Tools, subject: Subject): Promise<void> {
  const [place, session] = await meant(tools, subject);
  const { workspaceFolder } = place;
  const [models, config, usage] = await Promise.all([
    vscode.lm.selectChatModels(),
    tools.request("settings", "nexus/config/effective", { workspaceFolder }),
    tools.request("the model", "nexus/context/usage", { workspaceFolder, session }),
  ]);
  const provider = winner(config, NAME);
  if (provider !== "editor") {
    const text = `The settings of ${place.name} name the provider ${provider}, so its model is theirs, not the editor's.`;
    const show = "Show Settings";
    if ((await vscode.window.showInformationMessage(text, show)) === show)
      await vscode.commands.executeCommand("nexus.showEffectiveConfig");
    throw new Silent();
  }
  const items = [...models.map((model) => modelItem(model, usage.model)), settingsItem(config)];
  const gone = usage.model !== "" && !items.some((item) => item.name === usage.model);
  const now = gone ? `Now: ${usage.model}, which the editor does not offer any more` : "Whose window and tokens count?";
  const hint = models.length > 0 ? now : "The editor offers no model yet: open the chat once, then pick again";
  const { choice } = await pick(items, `Pick Model · ${session}`, hint);
  const result = await tools.request("picking", "nexus/model/pick", { workspaceFolder, session, ...choice });
  if (result.problem !== undefined)
    void vscode.window.showWarningMessage(`The model holds in this window only, for now. ${result.problem}`);
}

function modelItem(
  model: vscode.LanguageModelChat,
  current: string,
): vscode.QuickPickItem & { choice: Choice; name: string } {
  return {
    label: `${model.id === current ? "$(check) " : ""}${model.name}`,
    description: `${model.vendor} · ${model.id}`,
    ...(model.maxInputTokens > 0 ? { detail: `${exactly(model.maxInputTokens)} tokens` } : {}),
    choice: { ...windowOf(model), ...toolSwitches(model) },
    name: model.id,
  };
}

function settingsItem(config: EffectiveResult): vscode.QuickPickItem & { choice: Choice; name: string } {
  const name = winner(config, MODEL, PICKED);
  return {
    label: "$(settings-gear) Model of the settings",
    description: name === "" ? "none is set: the usual window is a guess" : name,
    choice: {},
    name,
  };
}

/** The text of a setting in force, apart from what a layer says. */
function winner(config: EffectiveResult, pointer: string, without?: string): string {
  const chain = (config.provenance[pointer] ?? []).filter((entry) => entry.layer !== without && entry.ignored !== true);
  const value = chain.at(-1)?.value;
  return typeof value === "string" ? value : "";
}
