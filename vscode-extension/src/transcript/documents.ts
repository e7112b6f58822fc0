/**
 * The conversations that are open in editors, and what each of them shows.
 *
 * 1. A document follows the ledger: a new turn shows within a moment, and who looks at the end goes on looking at it.
 * 2. What changes while nobody looks at a document is asked for when somebody does.
 * 3. After a reload of the window a document is read again. One that cannot be read is an error, never a text.
 * 4. A conversation that is renamed keeps its document; its name is then another one than the URI's.
 * 5. One that is not kept follows its program in the same way.
 */
import * as vscode from "vscode";
import { ReadOnlyFiles } from "../documents/readOnlyFiles";
import { isFolder } from "../focus";
import type { Nexus } from "../nexus";
import type { AssistantDidChange, FolderParams, SessionDidChange } from "../protocol";
import { type About, aboutOf, SCHEME, uriOf } from "./about";
import { TranscriptDecorations } from "./decorations";
import { type Pages, pages } from "./pages";
import { longMessages, matchOf, placeOf, type TranscriptText, transcriptText } from "./text";

const SETTLE_MS = 50;
const SHOWN_MS = 10_000; // at most, until the editor has a text that it was told of

/** What to show of a conversation: the end, or a message and in it what a search found. */
export interface Target {
  readonly position?: number;
  readonly snippet?: string;
}

/** A conversation that is, or is about to be, shown in an editor. */
export interface OpenTranscript {
  readonly uri: vscode.Uri;
  readonly about: About;
  readonly pages: Pages;
  session: string;
  text: TranscriptText | undefined;
  /** Numbers of the messages that were folded: whoever unfolds one keeps it so. */
  readonly folded: Set<number>;
}

export class TranscriptDocuments implements vscode.Disposable {
  /** The text of an open document is another one. */
  readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly #open = new Map<string, OpenTranscript>();
  readonly #due = new Set<OpenTranscript>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  readonly #files = new ReadOnlyFiles(SCHEME, (uri) => this.#textOf(uri));
  readonly #decorations = new TranscriptDecorations();

  constructor(readonly nexus: Nexus) {}

  /** What is known of a document. */
  of(document: vscode.TextDocument): OpenTranscript | undefined {
    return this.#open.get(document.uri.toString());
  }

  close(document: vscode.TextDocument): void {
    this.#open.delete(document.uri.toString());
  }

  /** The text of a document. Rejects with NexusError where the daemon cannot give it. */
  async #textOf(uri: vscode.Uri): Promise<string> {
    const transcript = this.#opened(uri);
    if (!transcript) throw new Error("Nexus does not know this document: another version of the extension made it.");
    transcript.text ??= transcriptText(await transcript.pages.load());
    return transcript.text.text;
  }

  /** Opens a conversation at its end, or at a message. */
  async show(about: About, target: Target = {}): Promise<void> {
    const uri = uriOf(about);
    const transcript = this.#opened(uri);
    if (!transcript) return;
    try {
      await this.#update(transcript, transcript.pages.load(target.position));
    } catch (error) {
      if (!documentOf(uri)) this.#open.delete(uri.toString());
      throw error;
    }
    if (target.position !== undefined) transcript.folded.add(target.position); // it is shown, so it stays unfolded
    const document = await vscode.workspace.openTextDocument(uri);
    const selection = transcript.text ? selectionOf(transcript.text, target) : new vscode.Range(0, 0, 0, 0);
    const editor = await vscode.window.showTextDocument(document, { preview: true, selection });
    if (target.position !== undefined) editor.revealRange(selection, vscode.TextEditorRevealType.InCenter);
    await this.dress();
  }

  /** Shows the next page at either end, of the active editor where no document is named. */
  async showMore(where: "earlier" | "later", key: unknown): Promise<void> {
    const active = vscode.window.activeTextEditor?.document.uri.toString() ?? "";
    const transcript = this.#open.get(typeof key === "string" ? key : active);
    const before = transcript?.pages.shown;
    if (!transcript || !before) return;
    await this.#update(transcript, transcript.pages[where]());
    const place = transcript.text && placeOf(transcript.text, where === "earlier" ? before.first : before.end - 1);
    if (!place) return;
    const at = new vscode.Range(place.line, 0, place.line, 0);
    for (const editor of editorsOf(transcript.uri)) {
      editor.selection = new vscode.Selection(at.start, at.start);
      editor.revealRange(at, vscode.TextEditorRevealType.InCenter);
    }
  }

  sessionChanged(change: SessionDidChange): void {
    this.refresh((transcript) => {
      if (!isIn(transcript, change) || transcript.about.source) return false;
      if (change.reason === "renamed" && change.former === transcript.session) transcript.session = change.session;
      return change.session === transcript.session;
    });
  }

  assistantChanged({ assistant, id }: AssistantDidChange): void {
    this.refresh(({ about: { source } }) => source?.program === assistant && source.id === id);
  }

  contextChanged(change: FolderParams): void {
    this.refresh((transcript) => isIn(transcript, change));
  }

  refresh(which: (transcript: OpenTranscript) => boolean): void {
    for (const transcript of this.#open.values()) if (which(transcript)) this.#due.add(transcript);
    this.schedule();
  }

  /** Colours the visible conversations, and folds long results in the active one, each once. */
  async dress(): Promise<void> {
    for (const editor of vscode.window.visibleTextEditors) {
      const text = this.of(editor.document)?.text;
      if (text) this.#decorations.show(editor, text);
    }
    const active = vscode.window.activeTextEditor;
    const transcript = active && this.of(active.document);
    if (!active || !transcript?.text) return;
    const cursor = active.selection.active.line;
    const unfolded = longMessages(transcript.text).filter(({ message }) => !transcript.folded.has(message.position));
    for (const { message } of unfolded) transcript.folded.add(message.position);
    const selectionLines = unfolded.filter(({ line, last }) => cursor < line || cursor > last).map(({ line }) => line);
    if (selectionLines.length === 0) return;
    await vscode.commands.executeCommand("editor.fold", { levels: 1, direction: "down", selectionLines });
    active.revealRange(active.selection); // where the user has gone meanwhile: folding moves lines
  }

  schedule(): void {
    if (this.#due.size > 0) this.#timer ??= setTimeout(() => this.#refreshDue(), SETTLE_MS);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.changed.dispose();
    this.#decorations.dispose();
    this.#files.dispose();
  }

  #refreshDue(): void {
    this.#timer = undefined;
    for (const transcript of this.#due) {
      const isOpen = this.#open.get(transcript.uri.toString()) === transcript;
      if (isOpen && editorsOf(transcript.uri).length === 0) continue;
      this.#due.delete(transcript);
      // what fails is shown as it was; the next change asks again
      if (isOpen) void this.#update(transcript, transcript.pages.refresh()).catch(() => undefined);
    }
  }

  #opened(uri: vscode.Uri): OpenTranscript | undefined {
    const about = aboutOf(uri);
    const key = uri.toString();
    const known = this.#open.get(key);
    if (known || !about) return known;
    const { folder: workspaceFolder, thread, source } = about;
    const scope = () =>
      source
        ? { workspaceFolder, ...source }
        : { workspaceFolder, session: made.session, ...(thread ? { thread } : {}) };
    const made: OpenTranscript = {
      uri,
      about,
      pages: pages(this.nexus, scope),
      session: about.session,
      text: undefined,
      folded: new Set(),
    };
    this.#open.set(key, made);
    return made;
  }

  /** Resolves when the editor has the text of what the pages are then. */
  async #update(transcript: OpenTranscript, load: Promise<unknown>): Promise<void> {
    await load;
    const page = transcript.pages.shown;
    if (!page) return;
    const text = transcriptText(page);
    if (text.text === transcript.text?.text) return;
    transcript.text = text;
    const document = documentOf(transcript.uri);
    const atEnd = editorsOf(transcript.uri).filter(isAtEnd);
    const whenShown = document && becomes(document, text.text);
    this.#files.changed([transcript.uri]);
    await whenShown;
    this.changed.fire(transcript.uri);
    for (const editor of atEnd) revealEnd(editor);
    await this.dress();
  }
}

/** What an editor selects: what was found, else the message's heading, else the end. */
function selectionOf(text: TranscriptText, { position, snippet }: Target): vscode.Range {
  const place = position === undefined ? undefined : placeOf(text, position);
  if (!place) return new vscode.Range(text.lines.length, 0, text.lines.length, 0);
  const match = snippet === undefined ? undefined : matchOf(text, place, snippet);
  if (match) return new vscode.Range(match.line, match.start, match.line, match.end);
  return new vscode.Range(place.line, 0, place.line, 0);
}

function isIn({ about }: OpenTranscript, change: FolderParams): boolean {
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
