/** Every command of the extension; those of conversations and agents have modules of their own. */
import { homedir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import type { Documents, Kind } from "../documents";
import { foldersOnDisk } from "../focus";
import type { Focus, NextTurn, Nexus } from "../nexus";
import type { CountResult } from "../protocol";
import { pythonPage } from "../server/remedies";
import type { Transcripts } from "../transcript";
import { exactly, plural } from "../usage/figures";
import { agentCommands } from "./agents";
import { guarded, makeTools, pick, Silent, type Subject, subjectOf, type Tools } from "./commandContext";
import { mcpCommands } from "./mcpServers";
import { modelCommands } from "./model";
import { sessionCommands } from "./sessions";

/** What commands need beside the daemon's answers. */
export interface Channels {
  readonly documents: Pick<Documents, "show" | "compare">;
  readonly output: Pick<vscode.OutputChannel, "show">;
  readonly trace: Pick<vscode.OutputChannel, "show">;
  /** Runs a command of the program `nexus` and returns what it printed. Rejects with NexusError. */
  readonly runServer: (args: readonly string[]) => Promise<string>;
}

type Commands = Record<string, (...args: unknown[]) => Promise<unknown>>;

const WALKTHROUGH = "nexus.nexus-context#start";

export function registerCommands(
  context: vscode.ExtensionContext,
  nexus: Nexus,
  focus: Focus,
  nextTurn: NextTurn,
  channels: Channels,
  transcripts: Pick<Transcripts, "show">,
): vscode.Disposable {
  const tools = makeTools(nexus, focus, nextTurn, channels.documents);
  const all: Commands = {
    ...viewCommands(tools),
    ...folderCommands(tools),
    ...serverCommands(context, nexus, channels),
    ...mcpCommands(tools),
    ...modelCommands(tools),
    ...sessionCommands(tools, transcripts),
    ...agentCommands(tools),
  };
  const registered = Object.entries(all).map(([id, run]) => vscode.commands.registerCommand(id, guarded(run)));
  return vscode.Disposable.from(...registered);
}

function viewCommands(tools: Tools): Commands {
  return {
    "nexus.openPanel": async () => vscode.commands.executeCommand("nexus.window.focus"),
    "nexus.showPrompt": (arg) => showDocument(tools, subjectOf(arg), "prompt"),
    "nexus.showRequest": (arg) => showRequest(tools, subjectOf(arg)),
    "nexus.showEffectiveConfig": (arg) => showDocument(tools, subjectOf(arg), "effective"),
    "nexus.check": async () => vscode.commands.executeCommand("workbench.actions.view.problems"),
    "nexus.countSelection": (arg) => countSelection(tools, arg),
  };
}

function folderCommands(tools: Tools): Commands {
  return {
    "nexus.switchFolder": () => switchFolder(tools),
    "nexus.chooseView": (arg) => chooseView(tools, subjectOf(arg)),
    "nexus.init": (arg) => initialize(tools, subjectOf(arg)),
    "nexus.openGlobalConfig": openGlobalConfig,
  };
}

function serverCommands(context: vscode.ExtensionContext, nexus: Nexus, channels: Channels): Commands {
  return {
    "nexus.initGlobal": () => initializeGlobal(channels.runServer),
    "nexus.restartServer": () => nexus.restart(),
    "nexus.getPython": async () => vscode.env.openExternal(vscode.Uri.parse(pythonPage(process.platform))),
    "nexus.showOutput": async () => channels.output.show(true),
    "nexus.showTrace": () => showTrace(channels),
    "nexus.openWalkthrough": async () =>
      vscode.commands.executeCommand(
        "workbench.action.openWalkthrough",
        context.extension?.id ? `${context.extension.id}#start` : WALKTHROUGH,
        false,
      ),
  };
}

async function showDocument(tools: Tools, subject: Subject, kind: Kind): Promise<void> {
  const place = await tools.place(subject);
  const agent = subject.agent ?? tools.focus.agent;
  const session = subject.session ?? tools.focus.session;
  const assistant = kind === "prompt" && subject.agent === undefined ? tools.focus.assistant : undefined;
  const who = assistant ? { assistant } : agent ? { agent } : kind.startsWith("request") ? { session } : {};
  await tools.documents.show({ kind, folder: place.workspaceFolder, ...who }, place.name);
}

async function showRequest(tools: Tools, subject: Subject): Promise<void> {
  const kinds = [
    { label: "Markdown", description: "to be read", as: "request" as const },
    { label: "JSON", description: "prompt, messages, tools and parameters as they are", as: "request.json" as const },
  ];
  const chosen = await pick(kinds, "Show Next Request", "As what?");
  await showDocument(tools, subject, chosen.as);
}

async function switchFolder(tools: Tools): Promise<void> {
  const folders = foldersOnDisk();
  if (folders.length === 0) await tools.place({});
  const focused = tools.focus.folder?.toString();
  const items = folders.map((folder) => ({
    label: `${folder.uri.toString() === focused ? "$(check) " : ""}${folder.name}`,
    description: folder.uri.fsPath,
    uri: folder.uri,
  }));
  tools.focus.setFolder((await pick(items, "Switch Folder", "Whose context?")).uri);
}

/** Whose context panel and status bar show: that of Nexus, or what an assistant reads. */
async function chooseView(tools: Tools, subject: Subject): Promise<void> {
  const { focus } = tools;
  const { folder, workspaceFolder, name } = await tools.place(subject);
  focus.setFolder(folder);
  if (subject.assistant !== undefined) {
    if (subject.assistant !== focus.assistant) focus.pickView(subject.assistant);
    return;
  }
  const { views, chosen } = await tools.request("asking for the views", "nexus/view/list", { workspaceFolder });
  const first = views.find((view) => view.name === chosen);
  const automatic = { name: undefined, label: "Automatic", description: first && `${first.title}: ${first.reason}` };
  const current = focus.isPicked ? focus.view?.name : undefined;
  const items = [automatic, ...views.map((view) => ({ ...view, label: view.title, description: view.reason }))];
  const marked = items.map(({ name, label, description = "" }) => ({
    name,
    label: `${name === current ? "$(check) " : ""}${label}`,
    description,
  }));
  focus.pickView((await pick(marked, `View · ${name}`, "Whose context?")).name);
}

async function initialize(tools: Tools, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  const { created, existing } = await tools.request("initializing", "nexus/workspace/init", {
    workspaceFolder: place.workspaceFolder,
  });
  const first = [...created, ...existing].find((uri) => uri.endsWith("/NEXUS.md")) ?? created[0];
  if (first) await vscode.window.showTextDocument(vscode.Uri.parse(first));
  const kept = existing.length > 0 ? `${plural(existing.length, "file")} there already, left alone` : "";
  const made = created.length > 0 ? `${plural(created.length, "file")} written into .nexus3` : "Nothing to write";
  void vscode.window.showInformationMessage(`${[made, kept].filter(Boolean).join("; ")}.`);
}

/** A directory that the daemon reads as the global layer. */
function globalDirectory(): vscode.Uri {
  return vscode.Uri.file(process.env.NEXUS_HOME || join(homedir(), ".nexus3"));
}

/** `nexus init --global`: the server's own templates. */
async function initializeGlobal(runServer: Channels["runServer"]): Promise<void> {
  const said = await runServer(["init", "--global"]);
  await vscode.window.showTextDocument(vscode.Uri.joinPath(globalDirectory(), "NEXUS.md"));
  void vscode.window.showInformationMessage(said);
}

async function openGlobalConfig(): Promise<void> {
  const file = vscode.Uri.joinPath(globalDirectory(), "config.json");
  try {
    await vscode.workspace.fs.stat(file);
  } catch {
    const make = "Make It";
    if ((await vscode.window.showInformationMessage(`There is no ${file.fsPath} yet.`, make)) !== make)
      throw new Silent();
    await vscode.commands.executeCommand("nexus.initGlobal");
  }
  await vscode.window.showTextDocument(file);
}

async function countSelection(tools: Tools, argument: unknown): Promise<CountResult | undefined> {
  const editor = vscode.window.activeTextEditor;
  const chosen = argument instanceof vscode.Uri ? argument : undefined;
  if (!chosen && !editor) {
    void vscode.window.showInformationMessage("Open a file, or select a text in one, to count its tokens.");
    throw new Silent();
  }
  const isSelection = !chosen && editor !== undefined && !editor.selection.isEmpty;
  const text = isSelection ? editor.document.getText(editor.selection) : undefined;
  const uri = chosen ?? editor?.document.uri;
  const what = text !== undefined || !uri ? { texts: [text ?? ""] } : await fileOrText(uri);
  const model = await modelOf(tools);
  const counted = await tools.request("counting", "nexus/tokens/count", { ...what, ...(model ? { model } : {}) });
  const name = isSelection ? "The selection" : (uri?.path.split("/").at(-1) ?? "The text");
  const how = counted.exact ? counted.encoding : `estimate, ${counted.encoding}`;
  void vscode.window.showInformationMessage(
    `${name}: ${counted.exact ? "" : "≈ "}${exactly(counted.total)} tokens (${[model, how].filter(Boolean).join(", ")}).`,
  );
  return counted;
}

/** A file for the daemon to read; of a document that is not on the disk, its text. */
async function fileOrText(uri: vscode.Uri): Promise<{ uris: string[] } | { texts: string[] }> {
  if (uri.scheme === "file") return { uris: [uri.toString()] };
  return { texts: [(await vscode.workspace.openTextDocument(uri)).getText()] };
}

/** The model of the focused conversation, so that the count is the one of its context. */
async function modelOf(tools: Tools): Promise<string | undefined> {
  const folder = tools.focus.folder;
  if (!folder) return undefined;
  const { session } = tools.focus;
  const usage = await tools.nexus.request("nexus/context/usage", { workspaceFolder: folder.toString(), session });
  return usage.model || undefined;
}

async function showTrace(channels: Channels): Promise<void> {
  channels.trace.show(true);
  const settings = vscode.workspace.getConfiguration("nexus");
  if (settings.get<string>("trace.server", "off") !== "off") return;
  const turnOn = "Turn On";
  const chosen = await vscode.window.showInformationMessage("The trace of the protocol is off.", turnOn);
  if (chosen === turnOn) await settings.update("trace.server", "messages", vscode.ConfigurationTarget.Global);
}
