/** The part of `vscode` that the unit tests need, in memory; its plain values are in `vscode-values`. Extend it where a test needs more. */
import { CancellationTokenSource, Disposable, EventEmitter, Uri } from "./vscode-values";

export * from "./vscode-values";

/** What the tests set and look at. `reset()` between tests. */
export const mock = {
  settings: new Map<string, unknown>(),
  inspected: new Map<string, Record<string, unknown>>(),
  commands: new Map<string, (...args: unknown[]) => unknown>(),
  executed: [] as [string, ...unknown[]][],
  context: new Map<string, unknown>(),
  messages: [] as { level: "info" | "warning" | "error"; text: string; items: unknown[] }[],
  /** What the user picks of the next message, quick pick or input box, in order. */
  answers: [] as unknown[],
  picks: [] as unknown[][],
  opened: [] as unknown[],
  statusItems: [] as Record<string, unknown>[],
  clipboard: "",
  reset(): void {
    this.settings.clear();
    this.inspected.clear();
    this.commands.clear();
    this.context.clear();
    for (const list of [this.executed, this.messages, this.answers, this.picks, this.opened, this.statusItems]) {
      list.length = 0;
    }
    workspace.workspaceFolders = undefined;
    workspace.isTrusted = true;
    Object.assign(lm, { tools: [], invoked: [], invoke: () => ({ content: [] }) });
    window.activeTextEditor = undefined;
  },
};

const say =
  (level: "info" | "warning" | "error") =>
  async (text: string, ...items: unknown[]) => {
    mock.messages.push({ level, text, items });
    return items.length > 0 ? mock.answers.shift() : undefined;
  };

const emitters = {
  activeEditor: new EventEmitter<unknown>(),
  folders: new EventEmitter<unknown>(),
  windowState: new EventEmitter<{ focused: boolean }>(),
  configuration: new EventEmitter<{ affectsConfiguration(section: string): boolean }>(),
  trust: new EventEmitter<void>(),
  document: new EventEmitter<unknown>(),
  text: new EventEmitter<unknown>(),
  closed: new EventEmitter<unknown>(),
  other: new EventEmitter<unknown>(),
};

/** To fire the editor's events. */
export const events = emitters;

export const window = {
  activeTextEditor: undefined as unknown,
  visibleTextEditors: [] as unknown[],
  onDidChangeActiveTextEditor: emitters.activeEditor.event,
  onDidChangeWindowState: emitters.windowState.event,
  onDidChangeActiveColorTheme: emitters.other.event,
  showInformationMessage: say("info"),
  showWarningMessage: say("warning"),
  showErrorMessage: say("error"),
  async showQuickPick(items: unknown[] | Promise<unknown[]>): Promise<unknown> {
    const all = await items;
    mock.picks.push(all);
    const answer = mock.answers.shift();
    return typeof answer === "function" ? all.find(answer as (item: unknown) => boolean) : answer;
  },
  /** The user answers each list of items that is shown, until one of them is picked; `undefined` hides the list. */
  createQuickPick(): Record<string, unknown> {
    const [accepted, hidden] = [new EventEmitter<void>(), new EventEmitter<void>()];
    return {
      activeItems: [],
      selectedItems: [],
      onDidAccept: accepted.event,
      onDidHide: hidden.event,
      show() {},
      dispose() {},
      set items(all: unknown[]) {
        mock.picks.push(all);
        const answer = mock.answers[0];
        const item = typeof answer === "function" ? all.find(answer as (item: unknown) => boolean) : answer;
        if (typeof answer === "function" && item === undefined) return; // the user waits for it
        mock.answers.shift();
        Object.assign(this, { selectedItems: item === undefined ? [] : [item] });
        (item === undefined ? hidden : accepted).fire();
      },
    };
  },
  async showInputBox(options: { validateInput?(text: string): unknown } = {}): Promise<unknown> {
    const answer = mock.answers.shift();
    const wrong = typeof answer === "string" ? await options.validateInput?.(answer) : undefined;
    if (wrong) throw new Error(`refused: ${JSON.stringify(wrong)}`);
    return answer;
  },
  async showOpenDialog(): Promise<unknown> {
    return mock.answers.shift();
  },
  async showSaveDialog(): Promise<unknown> {
    return mock.answers.shift();
  },
  async showTextDocument(document: unknown, options?: unknown): Promise<unknown> {
    mock.opened.push(document);
    return { document, options };
  },
  async withProgress(
    _options: unknown,
    task: (progress: { report(value: unknown): void }, token: CancellationTokenSource["token"]) => Promise<unknown>,
  ): Promise<unknown> {
    return task({ report() {} }, new CancellationTokenSource().token);
  },
  createStatusBarItem(): Record<string, unknown> {
    const item: Record<string, unknown> = { visible: false };
    item.show = () => {
      item.visible = true;
    };
    item.hide = () => {
      item.visible = false;
    };
    item.dispose = item.hide;
    mock.statusItems.push(item);
    return item;
  },
  createOutputChannel(name: string): Record<string, unknown> {
    const lines: string[] = [];
    const put = (text: string) => lines.push(text);
    return {
      name,
      lines,
      append: put,
      appendLine: put,
      info: put,
      warn: put,
      error: put,
      debug: put,
      trace: put,
      show() {},
      clear() {},
      dispose() {},
    };
  },
  createTreeView(): Record<string, unknown> {
    return { dispose() {}, visible: true, onDidChangeVisibility: emitters.other.event, reveal: async () => undefined };
  },
  registerWebviewViewProvider: () => new Disposable(() => undefined),
  registerFileDecorationProvider: () => new Disposable(() => undefined),
  registerTreeDataProvider: () => new Disposable(() => undefined),
  setStatusBarMessage: () => new Disposable(() => undefined),
};

export const workspace = {
  workspaceFolders: undefined as { uri: Uri; name: string; index: number }[] | undefined,
  isTrusted: true,
  textDocuments: [] as unknown[],
  onDidChangeWorkspaceFolders: emitters.folders.event,
  onDidChangeConfiguration: emitters.configuration.event,
  onDidGrantWorkspaceTrust: emitters.trust.event,
  onDidOpenTextDocument: emitters.document.event,
  onDidChangeTextDocument: emitters.text.event,
  onDidCloseTextDocument: emitters.closed.event,
  onDidCreateFiles: emitters.other.event,
  getWorkspaceFolder(uri: Uri): { uri: Uri; name: string; index: number } | undefined {
    const inside = (this.workspaceFolders ?? []).filter(
      (f) => uri.path === f.uri.path || uri.path.startsWith(`${f.uri.path}/`),
    );
    return inside.sort((a, b) => b.uri.path.length - a.uri.path.length)[0];
  },
  getConfiguration(section = "") {
    const key = (name: string) => (section ? `${section}.${name}` : name);
    return {
      get: (name: string, fallback?: unknown) =>
        mock.settings.has(key(name)) ? mock.settings.get(key(name)) : fallback,
      has: (name: string) => mock.settings.has(key(name)),
      inspect: (name: string) => mock.inspected.get(key(name)),
      update: async (name: string, value: unknown) => {
        mock.settings.set(key(name), value);
      },
    };
  },
  asRelativePath: (uri: Uri | string) => {
    const path = typeof uri === "string" ? uri : uri.path;
    const folder = workspace.workspaceFolders?.find((f) => path.startsWith(`${f.uri.path}/`));
    return folder ? path.slice(folder.uri.path.length + 1) : path;
  },
  async openTextDocument(what: unknown): Promise<unknown> {
    return what instanceof Uri ? { uri: what, getText: () => "" } : what;
  },
  /** File systems by their scheme. */
  fileSystems: new Map<string, unknown>(),
  registerFileSystemProvider(scheme: string, provider: unknown): Disposable {
    this.fileSystems.set(scheme, provider);
    return new Disposable(() => this.fileSystems.delete(scheme));
  },
  createFileSystemWatcher: () => ({
    onDidChange: emitters.other.event,
    onDidCreate: emitters.other.event,
    onDidDelete: emitters.other.event,
    dispose() {},
  }),
  fs: { writeFile: async () => undefined, readFile: async () => new Uint8Array(), stat: async () => ({}) },
};

export const commands = {
  registerCommand(id: string, run: (...args: unknown[]) => unknown): Disposable {
    if (mock.commands.has(id)) throw new Error(`command '${id}' already exists`);
    mock.commands.set(id, run);
    return new Disposable(() => mock.commands.delete(id));
  },
  async executeCommand(id: string, ...args: unknown[]): Promise<unknown> {
    mock.executed.push([id, ...args]);
    if (id === "setContext") mock.context.set(args[0] as string, args[1]);
    return mock.commands.get(id)?.(...args);
  },
};

const provider = () => new Disposable(() => undefined);
export const languages = {
  registerDefinitionProvider: provider,
  registerHoverProvider: provider,
  registerDocumentLinkProvider: provider,
  registerFoldingRangeProvider: provider,
  registerDocumentSymbolProvider: provider,
  registerCodeLensProvider: provider,
  setTextDocumentLanguage: async (document: unknown) => document,
};

export const env = {
  appName: "Visual Studio Code",
  uiKind: 1,
  clipboard: {
    writeText: async (text: string) => {
      mock.clipboard = text;
    },
  },
  openExternal: async () => true,
};

export const extensions = { getExtension: (_id: string): unknown => undefined };
export const version = "1.104.0";
export const l10n = { t: (text: string) => text };

// ---------------------------------------------------------------- chat and language models

export class LanguageModelTextPart {
  constructor(readonly value: string) {}
}

export class LanguageModelToolCallPart {
  constructor(
    readonly callId: string,
    readonly name: string,
    readonly input: object,
  ) {}
}

export class LanguageModelToolResultPart {
  constructor(
    readonly callId: string,
    readonly content: unknown[],
  ) {}
}

export const LanguageModelChatMessageRole = { User: 1, Assistant: 2 } as const;

export class LanguageModelChatMessage {
  constructor(
    readonly role: number,
    readonly content: unknown[],
  ) {}
}

export class LanguageModelError extends Error {
  constructor(
    message: string,
    readonly code = "Unknown",
    options?: { cause: unknown },
  ) {
    super(message, options);
  }
}

export class ChatRequestTurn {
  constructor(
    readonly prompt: string,
    readonly command?: string,
  ) {}
}

export class ChatResponseTurn {
  constructor(readonly result: { metadata?: Record<string, unknown> }) {}
}

export const FileType = { Unknown: 0, File: 1, Directory: 2, SymbolicLink: 64 } as const;

export const chat = {
  /** The participants that were made. */
  participants: [] as Record<string, unknown>[],
  createChatParticipant(id: string, requestHandler: unknown): Record<string, unknown> {
    const made = { id, requestHandler, dispose() {} };
    chat.participants.push(made);
    return made;
  },
};

export const lm = {
  /** What `selectChatModels` finds. */
  models: [] as unknown[],
  selectChatModels: async (): Promise<unknown[]> => lm.models,
  onDidChangeChatModels: emitters.other.event,
  /** The tools of the editor, and what each does. */
  tools: [] as { name: string; description: string; inputSchema: object | undefined }[],
  invoked: [] as unknown[],
  invoke: (_name: string): unknown => ({ content: [] }),
  async invokeTool(name: string, options: object): Promise<unknown> {
    lm.invoked.push([name, options]);
    return lm.invoke(name);
  },
};
