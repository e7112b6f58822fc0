/**
 * Code lenses: what an instruction file, its headings and its imports cost; state and cost of MCP servers.
 *
 * 1. They are the extension's, not the language client's, which ends with its server: while the next server is on
 *    its way the last lenses stay, marked, where the text has moved to. One that failed says so in their place.
 * 2. The setting `nexus.codeLens` takes effect at once.
 * 3. A click shows what is counted: its place in the system prompt, else its row in the panel. That of a server is a
 *    command on the server (`commands/mcpServers`).
 * 4. A title that is cut off still says the figure and the cause; the tooltip has the rest.
 */
import * as vscode from "vscode";
import { type Documents, rangeOf } from "./documents";
import { nameOf } from "./focus";
import { isOnItsWay, type Nexus } from "./nexus";
import type { Location, Range } from "./protocol";
import { DOCUMENTS } from "./server/documents";

/** What a lens counts; the argument of its command. */
export interface LensTarget {
  readonly workspaceFolder: string;
  /** The agent whose prompt it is; absent: the folder's own. */
  readonly agent?: string;
  /** The assistant whose text it is; absent: Nexus. */
  readonly assistant?: string;
  readonly source: Location;
  /** Where it is in the system prompt; absent: it is not there. */
  readonly prompt?: Range;
}

/** A lens as the server sends it. */
export interface ServerLens {
  readonly range: Range;
  readonly command: {
    readonly title: string;
    /** More than there is room for in the title. */
    readonly tooltip?: string;
    readonly command: string;
    readonly arguments?: readonly object[];
  };
}

export interface LensServer extends Pick<Nexus, "state" | "detail" | "onDidChangeState"> {
  readonly onDidChangeLenses: vscode.Event<void>;
  lenses(uri: string, token: vscode.CancellationToken): Promise<readonly ServerLens[]>;
}

export const SHOW_IN_CONTEXT = "nexus.showInContext";
const STALE = { tooltip: "From before the restart of the server" };

/** `reveal` shows a file in the panel. */
export function registerLenses(
  server: LensServer,
  documents: Documents,
  reveal: (source: Location) => Thenable<unknown>,
): vscode.Disposable {
  const changed = new vscode.EventEmitter<void>();
  const kept = new Map<string, vscode.CodeLens[]>();

  async function showInContext({ workspaceFolder, agent, assistant, prompt, source }: LensTarget): Promise<void> {
    if (!prompt) {
      await reveal(source);
      return;
    }
    const whose = assistant === undefined ? agent && { agent } : { assistant };
    const about = { kind: "prompt", folder: workspaceFolder, ...whose } as const;
    await documents.show(about, nameOf(vscode.Uri.parse(workspaceFolder)), rangeOf(prompt));
  }

  async function provide(document: vscode.TextDocument, token: vscode.CancellationToken): Promise<vscode.CodeLens[]> {
    const uri = document.uri.toString();
    if (!isOn(document.uri)) return [];
    if (server.state === "ready") {
      try {
        const lenses = (await server.lenses(uri, token)).map(lensOf);
        kept.set(uri, lenses);
        return lenses;
      } catch (error) {
        if (token.isCancellationRequested) throw error;
      }
    }
    const last = kept.get(uri) ?? [];
    if (server.state === "failed") return last.length > 0 ? [failure(server.detail)] : [];
    return server.state === "ready" || isOnItsWay(server.state) ? last.map(marked) : [];
  }

  return vscode.Disposable.from(
    changed,
    vscode.languages.registerCodeLensProvider([...DOCUMENTS], {
      onDidChangeCodeLenses: changed.event,
      provideCodeLenses: provide,
    }),
    vscode.commands.registerCommand(SHOW_IN_CONTEXT, showInContext),
    server.onDidChangeState(() => changed.fire()),
    server.onDidChangeLenses(() => changed.fire()),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("nexus.codeLens")) changed.fire();
    }),
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      const uri = document.uri.toString();
      const lenses = kept.get(uri);
      if (lenses) kept.set(uri, contentChanges.reduce(moved, lenses));
    }),
    vscode.workspace.onDidCloseTextDocument((document) => kept.delete(document.uri.toString())),
  );
}

function isOn(uri: vscode.Uri): boolean {
  return vscode.workspace.getConfiguration("nexus", uri).get<boolean>("codeLens", true);
}

function lensOf({ range, command }: ServerLens): vscode.CodeLens {
  const { title, tooltip, arguments: args = [] } = command;
  const more = tooltip === undefined ? {} : { tooltip };
  return new vscode.CodeLens(rangeOf(range), { title, ...more, command: command.command, arguments: [...args] });
}

function marked({ range, command }: vscode.CodeLens): vscode.CodeLens {
  return new vscode.CodeLens(range, command && { ...command, ...STALE, title: `$(sync) ${command.title}` });
}

function failure(detail: string): vscode.CodeLens {
  const title = "$(error) Nexus is not running: see why";
  return new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), { title, command: "nexus.openPanel", tooltip: detail });
}

/** Lenses where a change of the text leaves them; those of the text that it replaces go. The file's own stays on top. */
function moved(
  lenses: vscode.CodeLens[],
  { range, text }: Pick<vscode.TextDocumentContentChangeEvent, "range" | "text">,
): vscode.CodeLens[] {
  const lines = text.split("\n").length - 1 - (range.end.line - range.start.line);
  return lenses.flatMap((lens) => {
    const { isEmpty, start } = lens.range;
    if (isEmpty || start.isBefore(range.start)) return [lens];
    return start.isBefore(range.end) ? [] : [shifted(lens, lines)];
  });
}

function shifted({ range: { start, end }, command }: vscode.CodeLens, lines: number): vscode.CodeLens {
  return new vscode.CodeLens(
    new vscode.Range(start.line + lines, start.character, end.line + lines, end.character),
    command,
  );
}
