/** The plain values of the module `vscode`, as far as the extension uses them. */
import { resolve } from "node:path";

type Listener<T> = (value: T) => unknown;

export class Disposable {
  constructor(private readonly undo: () => unknown) {}
  static from(...all: { dispose(): unknown }[]): Disposable {
    return new Disposable(() => {
      for (const one of all) one.dispose();
    });
  }
  dispose(): void {
    this.undo();
  }
}

export class EventEmitter<T> {
  private readonly listeners = new Set<Listener<T>>();
  readonly event = (listener: Listener<T>, self?: unknown, disposables?: Disposable[]): Disposable => {
    const bound: Listener<T> = self === undefined ? listener : listener.bind(self);
    this.listeners.add(bound);
    const made = new Disposable(() => this.listeners.delete(bound));
    disposables?.push(made);
    return made;
  };
  fire(value: T): void {
    for (const listener of [...this.listeners]) listener(value);
  }
  dispose(): void {
    this.listeners.clear();
  }
}

export class CancellationTokenSource {
  private readonly emitter = new EventEmitter<void>();
  readonly token = { isCancellationRequested: false, onCancellationRequested: this.emitter.event };
  cancel(): void {
    if (this.token.isCancellationRequested) return;
    this.token.isCancellationRequested = true;
    this.emitter.fire();
  }
  dispose(): void {
    this.emitter.dispose();
  }
}

export class CancellationError extends Error {
  constructor() {
    super("Canceled");
    this.name = "Canceled";
  }
}

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
  isBefore(other: Position): boolean {
    return this.line < other.line || (this.line === other.line && this.character < other.character);
  }
  isBeforeOrEqual(other: Position): boolean {
    return !other.isBefore(this);
  }
  isAfter(other: Position): boolean {
    return other.isBefore(this);
  }
  isAfterOrEqual(other: Position): boolean {
    return !this.isBefore(other);
  }
  isEqual(other: Position): boolean {
    return this.line === other.line && this.character === other.character;
  }
  translate(lines = 0, characters = 0): Position {
    return new Position(this.line + lines, this.character + characters);
  }
}

export class Range {
  readonly start: Position;
  readonly end: Position;
  constructor(start: Position | number, end: Position | number, endLine?: number, endCharacter?: number) {
    this.start = start instanceof Position ? start : new Position(start, end as number);
    this.end = end instanceof Position ? end : new Position(endLine ?? 0, endCharacter ?? 0);
  }
  get isEmpty(): boolean {
    return this.start.isEqual(this.end);
  }
  contains(position: Position): boolean {
    return !position.isBefore(this.start) && !position.isAfter(this.end);
  }
}

export class Selection extends Range {
  get active(): Position {
    return this.end;
  }
}

export class Location {
  readonly range: Range;
  constructor(
    readonly uri: Uri,
    range: Range | Position,
  ) {
    this.range = range instanceof Range ? range : new Range(range, range);
  }
}

interface UriParts {
  scheme: string;
  authority: string;
  path: string;
  query: string;
  fragment: string;
}

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly authority: string,
    readonly path: string,
    readonly query: string,
    readonly fragment: string,
  ) {}
  static file(path: string): Uri {
    return new Uri("file", "", path, "", "");
  }
  static parse(text: string): Uri {
    const m = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/i.exec(text);
    if (!m) throw new Error(`no URI: ${text}`);
    const [, scheme = "", authority = "", path = "", query = "", fragment = ""] = m;
    return new Uri(scheme, authority, ...([path, query, fragment].map(decodeURIComponent) as [string, string, string]));
  }
  static from(p: Partial<UriParts> & { scheme: string }): Uri {
    return new Uri(p.scheme, p.authority ?? "", p.path ?? "", p.query ?? "", p.fragment ?? "");
  }
  static joinPath(uri: Uri, ...parts: string[]): Uri {
    return uri.with({ path: resolve(uri.path, ...parts) });
  }
  get fsPath(): string {
    return this.path;
  }
  with(p: Partial<UriParts>): Uri {
    return Uri.from({ ...this.parts(), ...p });
  }
  toString(): string {
    const path = this.path.split("/").map(encodeURIComponent).join("/");
    const at = this.scheme === "file" || this.authority ? `//${this.authority}` : "";
    const query = this.query ? `?${encodeURIComponent(this.query)}` : "";
    return `${this.scheme}:${at}${path}${query}${this.fragment ? `#${encodeURIComponent(this.fragment)}` : ""}`;
  }
  toJSON(): string {
    return this.toString();
  }
  private parts(): UriParts {
    return {
      scheme: this.scheme,
      authority: this.authority,
      path: this.path,
      query: this.query,
      fragment: this.fragment,
    };
  }
}

export class FileDecoration {
  constructor(
    readonly badge?: string,
    readonly tooltip?: string,
    readonly color?: ThemeColor,
  ) {}
}

export class ThemeColor {
  constructor(readonly id: string) {}
}

export class ThemeIcon {
  constructor(
    readonly id: string,
    readonly color?: ThemeColor,
  ) {}
}

export class MarkdownString {
  isTrusted: boolean | { enabledCommands: readonly string[] } = false;
  supportThemeIcons = false;
  supportHtml = false;
  constructor(
    public value = "",
    supportThemeIcons = false,
  ) {
    this.supportThemeIcons = supportThemeIcons;
  }
  appendMarkdown(text: string): this {
    this.value += text;
    return this;
  }
  appendText(text: string): this {
    this.value += text.replace(/[\\`*_{}[\]()#+\-.!~|<>]/g, "\\$&");
    return this;
  }
  appendCodeblock(text: string, language = ""): this {
    this.value += `\n\`\`\`${language}\n${text}\n\`\`\`\n`;
    return this;
  }
}

export class TreeItem {
  id?: string;
  description?: string | boolean;
  tooltip?: string | MarkdownString;
  contextValue?: string;
  iconPath?: unknown;
  command?: unknown;
  resourceUri?: Uri;
  accessibilityInformation?: { label: string; role?: string };
  constructor(
    public label: unknown,
    public collapsibleState = 0,
  ) {}
}

export class Hover {
  constructor(
    readonly contents: unknown,
    readonly range?: Range,
  ) {}
}

export class DocumentLink {
  tooltip?: string;
  constructor(
    readonly range: Range,
    readonly target?: Uri,
  ) {}
}

export class FoldingRange {
  constructor(
    readonly start: number,
    readonly end: number,
    readonly kind?: number,
  ) {}
}

export class DocumentSymbol {
  children: DocumentSymbol[] = [];
  constructor(
    readonly name: string,
    readonly detail: string,
    readonly kind: number,
    readonly range: Range,
    readonly selectionRange: Range,
  ) {}
}

export const TreeItemCollapsibleState = { None: 0, Collapsed: 1, Expanded: 2 } as const;
export const StatusBarAlignment = { Left: 1, Right: 2 } as const;
export const ViewColumn = { Active: -1, Beside: -2, One: 1 } as const;
export const ProgressLocation = { SourceControl: 1, Window: 10, Notification: 15 } as const;
export const SymbolKind = { File: 0, Module: 1, Namespace: 2, String: 14, Key: 19 } as const;
export const FoldingRangeKind = { Comment: 1, Imports: 2, Region: 3 } as const;
export const QuickPickItemKind = { Separator: -1, Default: 0 } as const;
export const ConfigurationTarget = { Global: 1, Workspace: 2, WorkspaceFolder: 3 } as const;
export const LogLevel = { Off: 0, Trace: 1, Debug: 2, Info: 3, Warning: 4, Error: 5 } as const;
export const UIKind = { Desktop: 1, Web: 2 } as const;

export class CodeLens {
  constructor(
    readonly range: Range,
    readonly command?: { title: string; command: string; arguments?: unknown[] },
  ) {}
}

export const FileChangeType = { Changed: 1, Created: 2, Deleted: 3 } as const;
export const FilePermission = { Readonly: 1 } as const;

export class FileSystemError extends Error {
  constructor(
    message: string,
    readonly code: string,
  ) {
    super(message);
  }
  static Unavailable(message: string): FileSystemError {
    return new FileSystemError(message, "Unavailable");
  }
  static NoPermissions(uri: Uri): FileSystemError {
    return new FileSystemError(uri.toString(), "NoPermissions");
  }
}
