/** Activation: makes the parts of the extension and connects them. What is slow is loaded afterwards. */
import * as vscode from "vscode";
import { registerChat } from "./chat";
import { registerCommands } from "./commands";
import { registerDocuments } from "./documents";
import { foldersOnDisk, makeFocus, tellFocus } from "./focus";
import { registerLenses } from "./lenses";
import { makeNextTurn } from "./nextTurn";
import type { Nexus } from "./nexus";
import { registerPanel } from "./panel";
import type { Connect } from "./server/connection";
import { makeServer, type Server } from "./server/start";
import { registerTranscripts } from "./transcript";
import { registerStatus } from "./usage/statusBar";
import { makeViews } from "./views";

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): { readonly nexus: Nexus } {
  server = makeServer(context, () => require("./client.js") as { connect: Connect });
  const nexus = server.daemon;
  const views = makeViews(nexus);
  const focus = makeFocus(context.workspaceState, views);
  const transcripts = registerTranscripts(nexus);
  const nextTurn = makeNextTurn(context);
  const documents = registerDocuments(nexus);
  context.subscriptions.push(
    server,
    views,
    focus,
    tellFocus(nexus, focus),
    nextTurn,
    stateInContext(nexus),
    transcripts,
    documents,
    registerCommands(context, nexus, focus, nextTurn, { ...server, documents }, transcripts),
    registerStatus(nexus, focus, nextTurn),
    registerPanel(context, nexus, focus, nextTurn, documents),
    registerLenses(nexus, documents, (source) => vscode.commands.executeCommand("nexus.panel.revealFile", source)),
    registerChat(context, nexus, focus, nextTurn),
    startLater(server),
  );
  return { nexus };
}

export async function deactivate(): Promise<void> {
  await server?.daemon.stop();
}

/** `nexus.state` and `nexus.obstacle` in `when` clauses. */
function stateInContext(nexus: Nexus): vscode.Disposable {
  const set = () => {
    void vscode.commands.executeCommand("setContext", "nexus.state", nexus.state);
    void vscode.commands.executeCommand("setContext", "nexus.obstacle", nexus.obstacle?.kind ?? "");
  };
  set();
  return nexus.onDidChangeState(set);
}

/** Starts the server once activation is over, and when a first folder or the user's trust comes. */
function startLater({ daemon }: Server): vscode.Disposable {
  const start = () => {
    const automatic = vscode.workspace.getConfiguration("nexus").get<string>("server.start") !== "onUse";
    if (automatic && foldersOnDisk().length > 0 && daemon.state === "stopped") void daemon.start();
  };
  const timer = setTimeout(start, 0);
  const listening = vscode.Disposable.from(
    vscode.workspace.onDidChangeWorkspaceFolders(start),
    vscode.workspace.onDidGrantWorkspaceTrust(start),
  );
  return new vscode.Disposable(() => {
    clearTimeout(timer);
    listening.dispose();
  });
}
