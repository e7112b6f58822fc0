/**
 * What the user looks at: a folder, its view, a conversation, an agent.
 *
 * 1. The folder is that of the active editor, else the last one, else the first of the workspace. One that was chosen
 *    stays until an editor of another folder becomes active. Folders that are not on the disk do not count.
 * 2. Each folder remembers its conversation, its agent and the view that was picked; an agent is forgotten with the
 *    window. An agent is Nexus's: while one is viewed, no assistant is.
 * 3. A conversation that the user picked is told apart from one that merely is in focus, until a chat went on in it.
 */
import * as vscode from "vscode";
import { type Focus, NEXUS, NEXUS_ALONE, type Nexus, type Views } from "./nexus";
import type { ViewInfo } from "./protocol";

export const MAIN = "main";
const KEY = "nexus.session:";
const VIEW_KEY = "nexus.assistant:";
const PICKED = "you chose it";
const NOTHING_LISTED: Views = { onDidChange: () => new vscode.Disposable(() => undefined), of: () => NEXUS_ALONE };

export function makeFocus(memory: vscode.Memento, views: Views = NOTHING_LISTED): Focus & vscode.Disposable {
  const changed = new vscode.EventEmitter<void>();
  const agents = new Map<string, string>();
  const picks = new Map<string, string>();
  let folder = folderOfEditor() ?? firstFolder();

  function look(next: vscode.Uri | undefined): void {
    if (next?.toString() === folder?.toString()) return;
    folder = next;
    changed.fire();
  }

  function pickedView(): string | undefined {
    return folder && memory.get<string>(VIEW_KEY + folder.toString());
  }

  function view(): ViewInfo | undefined {
    const list = folder && views.of(folder);
    const picked = list?.views.find(({ name }) => name === pickedView());
    if (picked) return { ...picked, reason: picked.inUse ? PICKED : `${PICKED}; ${picked.reason}` };
    return list?.views.find(({ name }) => name === list.chosen);
  }

  let lastView = JSON.stringify(view());
  function viewsChanged(): void {
    const now = JSON.stringify(view());
    if (now === lastView) return;
    lastView = now;
    changed.fire();
  }

  const listening = [
    views.onDidChange(viewsChanged),
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
    get views() {
      return (folder && views.of(folder)?.views) ?? [];
    },
    get view() {
      return view();
    },
    get isPicked() {
      return view()?.name === pickedView();
    },
    get assistant() {
      const name = view()?.name;
      return this.agent !== undefined || name === NEXUS ? undefined : name;
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
      if (this.assistant !== undefined) this.pickView(NEXUS); // it is Nexus's conversation
      this.setSession(session);
    },
    takePick() {
      const key = folder?.toString() ?? "";
      const picked = picks.get(key);
      picks.delete(key);
      return picked !== undefined && picked === this.session;
    },
    setAgent(agent) {
      if (!folder || agent === this.agent) return;
      if (agent === undefined) agents.delete(folder.toString());
      else agents.set(folder.toString(), agent);
      changed.fire();
    },
    pickView(name) {
      if (!folder || (name === pickedView() && this.agent === undefined)) return;
      agents.delete(folder.toString());
      void memory.update(VIEW_KEY + folder.toString(), name);
      changed.fire();
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

/** What people call a view. */
export function titleOf({ views }: Pick<Focus, "views">, name: string): string {
  return views.find((view) => view.name === name)?.title ?? name;
}

/** What people call a folder. */
export function nameOf(folder: vscode.Uri): string {
  return vscode.workspace.getWorkspaceFolder(folder)?.name ?? folder.path.split("/").at(-1) ?? "";
}
