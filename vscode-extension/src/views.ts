/**
 * The views of the folders that the user looks at: Nexus's own chat and each assistant, and the one that is chosen.
 *
 * 1. A folder's views are requested when they are first read, and again when its context, a session of an assistant
 *    or a file of one changes, and when the user comes back to the window.
 * 2. If the same reason puts several views first, such as two programs that run here, the view that is shown stays.
 * 3. A server that lists no views shows Nexus.
 */
import * as vscode from "vscode";
import { isFolder } from "./focus";
import { NEXUS_ALONE, type Nexus, type Views } from "./nexus";
import type { ViewListResult } from "./protocol";
import { withToken } from "./usage";
import { makePoller, type Poller } from "./usage/poller";

/** Files that assistants read, and the server perhaps does not watch. */
export const ASSISTANT_FILES =
  "**/{AGENTS.md,AGENTS.override.md,CLAUDE.md,CLAUDE.local.md,GEMINI.md,CONTEXT.md,.cursorrules,.claude/**,.cursor/rules/**,.github/copilot-instructions.md,.github/instructions/**,.codex/**,.gemini/**,.opencode/**,opencode.json,.mcp.json}";

/** Changes of a context that leave its views as they are. */
const OF_NEXUS: ReadonlySet<string> = new Set(["session", "compaction", "tokens"]);

export function makeViews(nexus: Nexus): Views & vscode.Disposable {
  const changed = new vscode.EventEmitter<void>();
  const lists = new Map<string, Poller<ViewListResult>>();

  function open(folder: vscode.Uri): Poller<ViewListResult> {
    let shown: ViewListResult | undefined;
    const list = makePoller<ViewListResult>(
      async (signal) => {
        const params = { workspaceFolder: folder.toString() };
        const answer = await withToken(signal, (token) => nexus.request("nexus/view/list", params, token));
        shown = withSteadyChoice(answer, shown?.chosen);
        return shown;
      },
      () => changed.fire(),
    );
    list.setVisible(nexus.state === "ready");
    lists.set(folder.toString(), list);
    return list;
  }

  function refresh(workspaceFolder?: string): void {
    for (const [folder, list] of lists) {
      if (workspaceFolder === undefined || isFolder(workspaceFolder, vscode.Uri.parse(folder))) list.poke();
    }
  }

  const files = vscode.workspace.createFileSystemWatcher(ASSISTANT_FILES, false, true);
  const listening = [
    files,
    files.onDidCreate(() => refresh()),
    files.onDidDelete(() => refresh()),
    nexus.onDidChangeState((state) => {
      for (const list of lists.values()) {
        if (state === "ready") list.renew();
        list.setVisible(state === "ready");
      }
    }),
    nexus.onDidChangeContext(({ workspaceFolder, reason }) => {
      if (!OF_NEXUS.has(reason)) refresh(workspaceFolder);
    }),
    nexus.onDidChangeAssistant(({ workspaceFolder }) => refresh(workspaceFolder)),
    vscode.window.onDidChangeWindowState(({ focused }) => {
      if (focused) refresh();
    }),
    vscode.workspace.onDidChangeWorkspaceFolders(({ removed }) => {
      for (const { uri } of removed) {
        lists.get(uri.toString())?.dispose();
        lists.delete(uri.toString());
      }
    }),
  ];

  return {
    onDidChange: changed.event,
    of(folder) {
      const list = lists.get(folder.toString()) ?? open(folder);
      return list.value ?? (list.trouble === undefined ? undefined : NEXUS_ALONE);
    },
    dispose() {
      for (const list of lists.values()) list.dispose();
      for (const one of [...listening, changed]) one.dispose();
    },
  };
}

/** The list with `shown` as its choice if the same reason holds for both. */
function withSteadyChoice(list: ViewListResult, shown: string | undefined): ViewListResult {
  const reasonOf = (name: string | undefined) => list.views.find((view) => view.name === name)?.reason;
  const isSteady = shown !== undefined && reasonOf(shown) === reasonOf(list.chosen);
  return isSteady ? { ...list, chosen: shown } : list;
}
