/**
 * Syntax errors of JSON files that the editor reports itself are not reported twice.
 *
 * 1. VS Code's own JSON support checks open documents, at nearly the same places as the daemon. What both find is left
 *    to it, as in any other JSON file; it cannot be switched off for single files without the completion from schemas.
 * 2. The daemon's quick fixes stay: they are offered at the place, whoever reports what is wrong there.
 * 3. What VS Code does not find, and all of files that it does not check, is reported by the daemon.
 */
import * as vscode from "vscode";

type Show = (uri: vscode.Uri, diagnostics: vscode.Diagnostic[]) => void;

const CHECKER = "vscode.json-language-features";
/** Codes of what VS Code accepts, tried with 1.139. */
const OURS_ALONE = new Set([
  "json.empty",
  "json.number-range",
  "json.lone-surrogate",
  "json.too-deep",
  "json.too-many-values",
]);
/** By a document's language, what VS Code accepts besides; other languages it does not check. */
const ACCEPTED: Readonly<Record<string, readonly string[]>> = { json: [], jsonc: ["json.comment"] };

export class JsonErrors implements vscode.Disposable {
  /** What the daemon said last of files with syntax errors. */
  private readonly said = new Map<string, { uri: vscode.Uri; diagnostics: vscode.Diagnostic[]; show: Show }>();
  private readonly listening: vscode.Disposable;

  constructor() {
    const changed = ({ uri }: vscode.TextDocument) => this.showAgain(uri.toString());
    this.listening = vscode.Disposable.from(
      vscode.workspace.onDidOpenTextDocument(changed), // another language is another opening
      vscode.workspace.onDidCloseTextDocument(changed),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (!change.affectsConfiguration("json.validate.enable")) return;
        for (const key of [...this.said.keys()]) this.showAgain(key);
      }),
    );
  }

  /** Shows what the daemon says of a file, without what VS Code says of it. */
  handle(uri: vscode.Uri, diagnostics: vscode.Diagnostic[], show: Show): void {
    if (diagnostics.some(isSyntaxError)) this.said.set(uri.toString(), { uri, diagnostics, show });
    else this.said.delete(uri.toString());
    show(uri, diagnostics.filter(isOursToReport(uri)));
  }

  dispose(): void {
    this.listening.dispose();
    this.said.clear();
  }

  private showAgain(key: string): void {
    const last = this.said.get(key);
    if (last) last.show(last.uri, last.diagnostics.filter(isOursToReport(last.uri)));
  }
}

function isOursToReport(uri: vscode.Uri): (diagnostic: vscode.Diagnostic) => boolean {
  const accepted = acceptedOf(uri);
  if (!accepted) return () => true;
  return (diagnostic) => {
    const code = codeOf(diagnostic);
    return !isSyntaxError(diagnostic) || OURS_ALONE.has(code) || accepted.includes(code);
  };
}

/** Codes that VS Code does not report of a file that it checks; undefined where it does not check it. */
function acceptedOf(uri: vscode.Uri): readonly string[] | undefined {
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
  if (!document || document.isClosed) return undefined;
  if (!vscode.extensions.getExtension(CHECKER)) return undefined;
  if (!vscode.workspace.getConfiguration("json", uri).get<boolean>("validate.enable", true)) return undefined;
  return ACCEPTED[document.languageId];
}

function isSyntaxError(diagnostic: vscode.Diagnostic): boolean {
  return codeOf(diagnostic).startsWith("json.");
}

function codeOf({ code }: vscode.Diagnostic): string {
  return String(typeof code === "object" ? code.value : (code ?? ""));
}
