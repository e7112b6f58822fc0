/**
 * Conversations as read-only documents, `nexus-transcript:`.
 *
 * 1. Which conversation it is stands in the URI, so a reload of the window finds it again.
 * 2. It follows the ledger: a new turn shows within a moment, and who looks at the end goes on looking at it.
 * 3. Only pages of a long conversation are shown; a lens at either end shows the next one.
 */
import * as vscode from "vscode";
import { isFolder, nameOf } from "../focus";
import { type Nexus, NexusError } from "../nexus";
import type { InFolder, SessionDidChange } from "../protocol";
import { showReceipt } from "../receipt";
import { folding, lenses, symbols } from "./editor";
import { type Pages, pages } from "./pages";
import { matchOf, placeOf, type TranscriptText, transcriptText } from "./text";

export const SCHEME = "nexus-transcript";
const SETTLE_MS = 50;
const SHOWN_MS = 10_000; // until the editor has a text that it was told of

/** A conversation; `thread` is one that it had before it was cleared. */
export interface About {
  readonly folder: string;
  readonly session: string;
  readonly thread?: string;
}

/** What to show of it: the end, or a message and in it what a search found. */
export interface Target {
  readonly position?: number;
  readonly snippet?: string;
}

/** A conversation that is, or was a moment ago, shown in an editor. */
interface Shown {
  readonly uri: vscode.Uri;
  readonly pages: Pages;
  /** Its name: another one than the URI's where it was renamed since. */
  session: string;
  text: TranscriptText | undefined;
}

export function uriOf({ folder, session, thread }: About): vscode.Uri {
  const name = session.replaceAll("/", "∕").replaceAll("\\", "∖");
  const query = JSON.stringify({ folder, session, ...(thread ? { thread } : {}) });
  const path = `/${nameOf(vscode.Uri.parse(folder))}/${name}${thread ? ", cleared" : ""} (conversation)`;
  return vscode.Uri.from({ scheme: SCHEME, path, query });
}

export function aboutOf(uri: vscode.Uri): About | undefined {
  try {
    const { folder, session, thread } = JSON.parse(uri.query) as Partial<About>;
    if (typeof folder !== "string" || typeof session !== "string") return undefined;
    return { folder, session, ...(typeof thread === "string" ? { thread } : {}) };
  } catch {
    return undefined;
  }
}

export interface Transcripts extends vscode.Disposable {
  /** Opens a conversation at its end, or at a message. */
  show(about: About, target?: Target): Promise<void>;
}

export function registerTranscripts(nexus: Nexus): Transcripts {
  const open = new Map<string, Shown>();
  const changed = new vscode.EventEmitter<vscode.Uri>();
  const selector = { scheme: SCHEME };
  const textOf = (document: vscode.TextDocument) => open.get(document.uri.toString())?.text;

  function shownOf(uri: vscode.Uri): Shown | undefined {
    const about = aboutOf(uri);
    const key = uri.toString();
    const known = open.get(key);
    if (known || !about) return known;
    const { folder: workspaceFolder, thread } = about;
    const scope = () => ({ workspaceFolder, session: shown.session, ...(thread ? { thread } : {}) });
    const shown: Shown = { uri, pages: pages(nexus, scope), session: about.session, text: undefined };
    open.set(key, shown);
    return shown;
  }

  const provider: vscode.TextDocumentContentProvider = {
    onDidChange: changed.event,
    async provideTextDocumentContent(uri) {
      const shown = shownOf(uri);
      if (!shown) return "";
      try {
        shown.text ??= transcriptText(await shown.pages.load());
        return shown.text.text;
      } catch (error) {
        if (error instanceof NexusError) return `${error.message}\n`;
        throw error;
      }
    },
  };

  /** Takes the text of what the pages are now to the editor. */
  async function tell(shown: Shown, load: Promise<unknown>): Promise<void> {
    await load;
    const page = shown.pages.shown;
    if (!page) return;
    const text = transcriptText(page);
    if (text.text === shown.text?.text) return;
    shown.text = text;
    const atEnd = editorsOf(shown.uri).filter(isAtEnd);
    const document = documentOf(shown.uri);
    if (!document) return;
    const whenShown = becomes(document, text.text);
    changed.fire(shown.uri);
    await whenShown;
    for (const editor of atEnd) revealEnd(editor);
  }

  async function show(about: About, target: Target = {}): Promise<void> {
    const uri = uriOf(about);
    const shown = shownOf(uri);
    if (!shown) return;
    try {
      await tell(shown, shown.pages.load(target.position));
    } catch (error) {
      if (!documentOf(uri)) open.delete(uri.toString());
      throw error;
    }
    const document = await vscode.workspace.openTextDocument(uri);
    const { text } = shown;
    const selection = text ? selectionOf(text, target) : undefined;
    const editor = await vscode.window.showTextDocument(document, {
      preview: true,
      ...(selection ? { selection } : {}),
    });
    if (selection && target.position !== undefined) editor.revealRange(selection, vscode.TextEditorRevealType.InCenter);
  }

  /** The next page at either end; the message that was there before stays where it is looked at. */
  async function more(where: "earlier" | "later", key: unknown): Promise<void> {
    const active = vscode.window.activeTextEditor?.document.uri;
    const uri = typeof key === "string" ? key : active?.scheme === SCHEME ? active.toString() : "";
    const shown = open.get(uri);
    const before = shown?.pages.shown;
    if (!shown || !before) return;
    await tell(shown, shown.pages[where]());
    const place = shown.text && placeOf(shown.text, where === "earlier" ? before.first : before.end - 1);
    if (!place) return;
    const at = new vscode.Range(place.line, 0, place.line, 0);
    for (const editor of editorsOf(shown.uri)) {
      editor.selection = new vscode.Selection(at.start, at.start);
      editor.revealRange(at, vscode.TextEditorRevealType.InCenter);
    }
  }

  const due = new Set<Shown>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  function refresh(which: (about: About, shown: Shown) => boolean): void {
    for (const shown of open.values()) {
      const about = aboutOf(shown.uri);
      if (about && which(about, shown)) due.add(shown);
    }
    schedule();
  }
  function schedule(): void {
    if (due.size > 0) timer ??= setTimeout(refreshDue, SETTLE_MS);
  }
  /** What nobody looks at waits until somebody does. */
  function refreshDue(): void {
    timer = undefined;
    for (const shown of due) {
      const isOpen = open.get(shown.uri.toString()) === shown;
      if (isOpen && editorsOf(shown.uri).length === 0) continue;
      due.delete(shown);
      // what fails is shown as it was; the next change asks again
      if (isOpen) void tell(shown, shown.pages.refresh()).catch(() => undefined);
    }
  }

  function sessionChanged(change: SessionDidChange): void {
    refresh((about, shown) => {
      if (!isSame(about, change)) return false;
      if (change.reason === "renamed" && change.former === shown.session) shown.session = change.session;
      return change.session === shown.session;
    });
  }

  const registered = vscode.Disposable.from(
    changed,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, provider),
    vscode.workspace.onDidCloseTextDocument((document) => open.delete(document.uri.toString())),
    vscode.window.onDidChangeVisibleTextEditors(schedule),
    nexus.onDidChangeSession(sessionChanged),
    nexus.onDidChangeContext((change) => refresh((about) => isSame(about, change))),
    nexus.onDidChangeState((state) => state === "ready" && refresh(() => true)),
    vscode.languages.registerFoldingRangeProvider(selector, {
      provideFoldingRanges: (document) => folding(textOf(document)),
    }),
    vscode.languages.registerDocumentSymbolProvider(
      selector,
      { provideDocumentSymbols: (document) => symbols(textOf(document)) },
      { label: "Nexus" },
    ),
    vscode.languages.registerCodeLensProvider(selector, {
      onDidChangeCodeLenses: (listener) => changed.event(() => listener()),
      provideCodeLenses: (document) => {
        const shown = open.get(document.uri.toString());
        const about = aboutOf(document.uri);
        return shown && about
          ? lenses(shown.text, shown.pages.shown, { ...about, session: shown.session }, shown.uri)
          : [];
      },
    }),
    vscode.commands.registerCommand("nexus.transcript.receipt", showReceipt),
    vscode.commands.registerCommand("nexus.transcript.earlier", (key: unknown) => more("earlier", key)),
    vscode.commands.registerCommand("nexus.transcript.later", (key: unknown) => more("later", key)),
    new vscode.Disposable(() => clearTimeout(timer)),
  );
  return { show, dispose: () => registered.dispose() };
}

/** What an editor selects: what was found, else the message's heading, else the end. */
function selectionOf(text: TranscriptText, { position, snippet }: Target): vscode.Range {
  const place = position === undefined ? undefined : placeOf(text, position);
  if (!place) {
    const end = new vscode.Position(text.lines.length, 0);
    return new vscode.Range(end, end);
  }
  const match = snippet === undefined ? undefined : matchOf(text, place, snippet);
  if (match) return new vscode.Range(match.line, match.start, match.line, match.end);
  return new vscode.Range(place.line, 0, place.line, 0);
}

function isSame(about: About, change: InFolder): boolean {
  return isFolder(change.workspaceFolder, vscode.Uri.parse(about.folder));
}

function documentOf(uri: vscode.Uri): vscode.TextDocument | undefined {
  const key = uri.toString();
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === key);
}

function editorsOf(uri: vscode.Uri): vscode.TextEditor[] {
  const key = uri.toString();
  return vscode.window.visibleTextEditors.filter((editor) => editor.document.uri.toString() === key);
}

function isAtEnd(editor: vscode.TextEditor): boolean {
  const last = editor.document.lineCount - 1;
  return editor.visibleRanges.some((range) => range.end.line >= last);
}

function revealEnd(editor: vscode.TextEditor): void {
  const last = editor.document.lineCount - 1;
  editor.revealRange(new vscode.Range(last, 0, last, 0));
}

/** Resolves when a document has this text, or after a while all the same. */
function becomes(document: vscode.TextDocument, text: string): Promise<void> {
  return new Promise((resolve) => {
    const heard = vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.document === document && document.getText() === text) end();
    });
    const timer = setTimeout(end, SHOWN_MS);
    function end(): void {
      clearTimeout(timer);
      heard.dispose();
      resolve();
    }
  });
}
