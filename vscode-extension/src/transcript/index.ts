/** Conversations as read-only documents, `nexus-transcript:`, with outline, folding and lenses. */
import * as vscode from "vscode";
import type { Nexus } from "../nexus";
import { type About, SCHEME } from "./about";
import { type Target, TranscriptDocuments } from "./documents";
import { folding, lenses, symbols } from "./editor";

export interface Transcripts extends vscode.Disposable {
  /** Opens a conversation at its end, or at a message. */
  show(about: About, target?: Target): Promise<void>;
}

export function registerTranscripts(nexus: Nexus): Transcripts {
  const documents = new TranscriptDocuments(nexus);
  const { commands, languages, window, workspace } = vscode;
  const registered = vscode.Disposable.from(
    documents,
    workspace.onDidCloseTextDocument((document) => documents.close(document)),
    window.onDidChangeVisibleTextEditors(() => documents.schedule()),
    window.onDidChangeVisibleTextEditors(() => documents.dress()),
    window.onDidChangeActiveTextEditor(() => documents.dress()),
    window.onDidChangeActiveColorTheme(() => documents.dress()),
    nexus.onDidChangeSession((change) => documents.sessionChanged(change)),
    nexus.onDidChangeAssistant((change) => documents.assistantChanged(change)),
    nexus.onDidChangeContext((change) => documents.contextChanged(change)),
    nexus.onDidChangeState((state) => state === "ready" && documents.refresh(() => true)),
    ...languageFeatures(documents, languages),
    commands.registerCommand("nexus.transcript.earlier", (key: unknown) => documents.showMore("earlier", key)),
    commands.registerCommand("nexus.transcript.later", (key: unknown) => documents.showMore("later", key)),
  );
  return { show: (about, target) => documents.show(about, target), dispose: () => registered.dispose() };
}

function languageFeatures(documents: TranscriptDocuments, languages: typeof vscode.languages): vscode.Disposable[] {
  const selector = { scheme: SCHEME };
  return [
    languages.registerFoldingRangeProvider(selector, {
      provideFoldingRanges: (document) => folding(documents.of(document)?.text),
    }),
    languages.registerDocumentSymbolProvider(
      selector,
      { provideDocumentSymbols: (document) => symbols(documents.of(document)?.text) },
      { label: "Nexus" },
    ),
    languages.registerCodeLensProvider(selector, {
      onDidChangeCodeLenses: (listener) => documents.changed.event(() => listener()),
      provideCodeLenses: (document) => lenses(documents.of(document)),
    }),
  ];
}
