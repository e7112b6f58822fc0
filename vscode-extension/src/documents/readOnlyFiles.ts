/**
 * Read-only files of a scheme of our own: texts that are made when somebody opens them.
 *
 * 1. A file system, not a content provider: the editor marks its files as read-only, and opens them again after a
 *    reload of the window.
 * 2. A text is kept while its document is open. When what it shows changed, it is made anew.
 * 3. What cannot be made is an error, never a text; a text that cannot be made anew stays as it was.
 */
import * as vscode from "vscode";

/** Makes the text of a file; rejects with what the user is told. */
export type MakeText = (uri: vscode.Uri) => Promise<string>;

interface Made {
  readonly bytes: Uint8Array;
  /** When it became this text, in milliseconds: the editor compares it. */
  readonly mtime: number;
}

export class ReadOnlyFiles implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly made = new Map<string, Made>();
  private readonly making = new Map<string, Promise<Made>>();
  private readonly stale = new Set<string>();
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  private readonly registered: vscode.Disposable;

  readonly onDidChangeFile = this.changes.event;

  constructor(
    scheme: string,
    private readonly makeText: MakeText,
  ) {
    this.registered = vscode.Disposable.from(
      vscode.workspace.registerFileSystemProvider(scheme, this, { isReadonly: true, isCaseSensitive: true }),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        if (uri.scheme === scheme) this.forget(uri);
      }),
      this.changes,
    );
  }

  /** Resolves when a file can be opened; rejects with what `makeText` says. */
  async prepare(uri: vscode.Uri): Promise<void> {
    await this.fileOf(uri);
  }

  /** What these files show is different. */
  changed(uris: readonly vscode.Uri[]): void {
    for (const uri of uris) this.stale.add(uri.toString());
    this.changes.fire(uris.map((uri) => ({ type: vscode.FileChangeType.Changed, uri })));
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const { bytes, mtime } = await this.opened(uri);
    const permissions = vscode.FilePermission.Readonly;
    return { type: vscode.FileType.File, ctime: 0, mtime, size: bytes.length, permissions };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    return (await this.opened(uri)).bytes;
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  writeFile(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  dispose(): void {
    this.registered.dispose();
  }

  private async opened(uri: vscode.Uri): Promise<Made> {
    try {
      return await this.fileOf(uri);
    } catch (error) {
      throw vscode.FileSystemError.Unavailable(error instanceof Error ? error.message : String(error));
    }
  }

  private fileOf(uri: vscode.Uri): Promise<Made> {
    const key = uri.toString();
    const made = this.made.get(key);
    if (made && !this.stale.has(key)) return Promise.resolve(made);
    let making = this.making.get(key);
    if (!making) {
      making = this.make(uri, key).finally(() => this.making.delete(key));
      this.making.set(key, making);
    }
    return making;
  }

  private async make(uri: vscode.Uri, key: string): Promise<Made> {
    this.stale.delete(key); // what changes from here on is another change
    const before = this.made.get(key);
    try {
      const bytes = new TextEncoder().encode(await this.makeText(uri));
      const mtime = Math.max(Date.now(), (before?.mtime ?? 0) + 1);
      const made = before && Buffer.compare(before.bytes, bytes) === 0 ? before : { bytes, mtime };
      this.made.set(key, made);
      return made;
    } catch (error) {
      if (before) return before;
      throw error;
    }
  }

  private forget(uri: vscode.Uri): void {
    this.made.delete(uri.toString());
    this.stale.delete(uri.toString());
  }
}
