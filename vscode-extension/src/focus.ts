/**
 * What the user looks at: a folder, a conversation, an agent, another assistant.
 *
 * 1. The folder is that of the active editor, else the last one, else the first of the workspace. One that was chosen
 *    stays until an editor of another folder becomes active. Folders that are not on the disk do not count.
 * 2. Each folder remembers its conversation, its agent and its assistant; an agent is forgotten with the window.
 * 3. A conversation that the user picked is told apart from one that merely is in focus, until a chat went on in it.
 */
import * as vscode from "vscode";
import type { Focus, Nexus } from "./nexus";

export const MAIN = "main";
const KEY = "nexus.session:";
const ASSISTANT_KEY = "nexus.assistant:";

export function makeFocus(memory: vscode.Memento): Focus & vscode.Disposable {
  const changed = new vscode.EventEmitter<void>();
  const agents = new Map<string, string>();
  const picks = new Map<string, string>();
  let folder = folderOfEditor() ?? firstFolder();

  function look(next: vscode.Uri | undefined): void {
    if (next?.toString() === folder?.toString()) return;
    folder = next;
    changed.fire();
  }

  /** One of both is looked at, or neither. */
  function view(viewed: vscode.Uri, agent: string | undefined, assistant: string | undefined): void {
    if (agent === undefined) agents.delete(viewed.toString());
    else agents.set(viewed.toString(), agent);
    void memory.update(ASSISTANT_KEY + viewed.toString(), assistant);
    changed.fire();
  }

  const listening = [
    vscode.window.onDidChangeActiveTextEditor(() => look(folderOfEditor() ?? folder)),
    vscode.workspace.onDidChangeWorkspaceFolders(() => look(stillThere(folder) ?? folderOfEditor() ?? firstFolder())),
  ];

  return {
    onDidChange: changed.event,
    get folder() {
      return folder;
    },
    get session() {
      return (folder && memory.get<string>(KEY + folder.toString())) || MAIN;
    },
    get agent() {
      return folder && agents.get(folder.toString());
    },
    get assistant() {
      return folder && memory.get<string>(ASSISTANT_KEY + folder.toString());
    },
    setFolder: look,
    setSession(session) {
      if (!folder || session === this.session) return;
      void memory.update(KEY + folder.toString(), session === MAIN ? undefined : session);
      changed.fire();
    },
    pickSession(session) {
      if (!folder) return;
      picks.set(folder.toString(), session);
      this.setSession(session);
    },
    takePick() {
      const key = folder?.toString() ?? "";
      const picked = picks.get(key);
      picks.delete(key);
      return picked !== undefined && picked === this.session;
    },
    setAgent(agent) {
      if (folder && (agent !== this.agent || this.assistant !== undefined)) view(folder, agent, undefined);
    },
    setAssistant(assistant) {
      if (folder && assistant !== this.assistant) view(folder, undefined, assistant);
    },
    dispose() {
      for (const one of [...listening, changed]) one.dispose();
    },
  };
}

/** Tells the daemon which conversation is in focus: the folder's layers, problems and lenses are counted for its model. */
export function tellFocus(nexus: Nexus, focus: Focus): vscode.Disposable {
  let told = "";
  const tell = () => {
    const { folder, session } = focus;
    if (nexus.state !== "ready") told = "";
    if (nexus.state !== "ready" || !folder || told === folder.toString() + session) return;
    told = folder.toString() + session;
    const failed = () => undefined; // figures are then counted for the model that was picked last
    nexus.request("nexus/session/focus", { workspaceFolder: folder.toString(), session }).catch(failed);
  };
  tell();
  return vscode.Disposable.from(nexus.onDidChangeState(tell), focus.onDidChange(tell));
}

function folderOfEditor(): vscode.Uri | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  const folder = uri && vscode.workspace.getWorkspaceFolder(uri)?.uri;
  return folder?.scheme === "file" ? folder : undefined;
}

function firstFolder(): vscode.Uri | undefined {
  return foldersOnDisk()[0]?.uri;
}

function stillThere(folder: vscode.Uri | undefined): vscode.Uri | undefined {
  return vscode.workspace.workspaceFolders?.find((one) => one.uri.toString() === folder?.toString())?.uri;
}

/** The workspace's folders that the daemon can read: not those of a repository on the web, say. */
export function foldersOnDisk(): readonly vscode.WorkspaceFolder[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((one) => one.uri.scheme === "file");
}

/** Whether a URI of the daemon is this folder: clients and servers escape URIs differently. */
export function isFolder(uri: string, folder: vscode.Uri | undefined): boolean {
  return folder !== undefined && (uri === folder.toString() || vscode.Uri.parse(uri).toString() === folder.toString());
}

/** What people call a folder. */
export function nameOf(folder: vscode.Uri): string {
  return vscode.workspace.getWorkspaceFolder(folder)?.name ?? folder.path.split("/").at(-1) ?? "";
}
