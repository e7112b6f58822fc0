import type * as api from "vscode";
import { registerChat } from "../../src/chat";
import { type Focus, NEXUS_ALONE } from "../../src/nexus";
import { FakeDaemon, FOLDER, OTHER } from "./chat-daemon";
import { fakeNextTurn } from "./nexus";
import * as mock from "./vscode";

export class FakeFocus implements Focus {
  folder: api.Uri | undefined = mock.Uri.parse(FOLDER) as unknown as api.Uri;
  session = "main";
  agent: string | undefined;
  assistant: string | undefined;
  readonly views = NEXUS_ALONE.views;
  readonly view = NEXUS_ALONE.views[0];
  readonly isPicked = false;
  readonly onDidChange = new mock.EventEmitter<void>().event as never;
  setFolder(folder: api.Uri): void {
    this.folder = folder;
  }
  setSession(session: string): void {
    this.session = session;
  }
  private picked = false;
  pickSession(session: string): void {
    this.picked = true;
    this.session = session;
  }
  takePick(): boolean {
    const { picked } = this;
    this.picked = false;
    return picked;
  }
  setAgent(agent: string | undefined): void {
    this.agent = agent;
  }
  pickView(name: string | undefined): void {
    this.assistant = name;
  }
}

export type Reply = string | { call: string; input: object; id?: string } | Error | (() => unknown);

/** A model whose answers are given: a list of pieces for each request. A function is run between pieces. */
export class FakeModel {
  readonly name = "Fake";
  readonly id = "fake-1";
  readonly vendor = "test";
  readonly family = "fake";
  readonly version = "1";
  maxInputTokens = 32000;
  capabilities: Record<string, boolean> | undefined;
  readonly requests: {
    messages: mock.LanguageModelChatMessage[];
    options: { tools?: { name: string }[]; modelOptions?: object };
  }[] = [];
  replies: Reply[][] = [];

  async sendRequest(
    messages: mock.LanguageModelChatMessage[],
    options: object,
    token: api.CancellationToken,
  ): Promise<{ stream: AsyncIterable<unknown> }> {
    this.requests.push({ messages, options });
    const pieces = this.replies.shift() ?? ["ok"];
    if (pieces[0] instanceof Error) {
      throw pieces[0];
    }
    return { stream: stream(pieces, token) };
  }

  async countTokens(text: string): Promise<number> {
    return Math.ceil(text.length / 4);
  }
}

async function* stream(pieces: Reply[], token: api.CancellationToken): AsyncGenerator<unknown> {
  for (const [index, piece] of pieces.entries()) {
    if (token.isCancellationRequested) {
      throw new mock.CancellationError();
    }
    if (typeof piece === "function") {
      await piece();
    } else if (piece instanceof Error) {
      throw piece;
    } else if (typeof piece === "string") {
      yield new mock.LanguageModelTextPart(piece);
    } else {
      yield new mock.LanguageModelToolCallPart(piece.id ?? `call_${index}`, piece.call, piece.input);
    }
  }
}

/** What an answer showed. */
export class FakeStream {
  text = "";
  readonly buttons: { title: string; command: string; arguments?: unknown[] }[] = [];
  readonly references: string[] = [];
  readonly steps: string[] = [];
  /** What came in which order: VS Code takes the last run of Markdown as the answer. */
  readonly markdowns: (string | { value: string })[] = [];
  readonly parts: ("markdown" | "button")[] = [];
  onButton: ((button: { title: string; command: string; arguments?: unknown[] }) => void) | undefined;
  markdown(text: string | { value: string }): void {
    this.text += typeof text === "string" ? text : text.value;
    this.parts.push("markdown");
    this.markdowns.push(text);
  }
  button(command: { title: string; command: string; arguments?: unknown[] }): void {
    this.buttons.push(command);
    this.parts.push("button");
    this.onButton?.(command);
  }
  reference(value: { uri?: unknown } & object): void {
    this.references.push(String(value.uri ?? value));
  }
  progress(step: string): void {
    this.steps.push(step);
  }
  anchor(uri: object): void {
    this.text += `<${String(uri)}>`;
  }
  titles(): string[] {
    return this.buttons.map((one) => one.title);
  }
}

export interface Result {
  errorDetails?: { message: string };
  metadata?: { nexus: Record<string, unknown> };
}

/** A chat thread of the editor: it keeps the history as VS Code does. */
export class Thread {
  history: unknown[] = [];
  constructor(private readonly desk: Desk) {}

  async ask(prompt: string, more: Record<string, unknown> = {}): Promise<FakeStream & { result: Result }> {
    const shown = new FakeStream();
    this.desk.shown = shown;
    shown.onButton = (button) => this.desk.pressNext(button);
    const source = (more.source as mock.CancellationTokenSource | undefined) ?? new mock.CancellationTokenSource();
    const request = { prompt, command: undefined, references: [], toolReferences: [], model: this.desk.model, ...more };
    const result = await this.desk.handler(request, { history: [...this.history] }, shown, source.token);
    // VS Code keeps nothing of the result of an answer that was cancelled
    const kept = source.token.isCancellationRequested ? {} : structuredClone(result);
    this.history.push(new mock.ChatRequestTurn(prompt), new mock.ChatResponseTurn(kept));
    return Object.assign(shown, { result });
  }

  /** The user takes back the last exchanges. */
  back(count = 1): void {
    this.history.splice(-2 * count);
  }
}

interface Made {
  requestHandler: Desk["handler"];
  followupProvider: { provideFollowups: Desk["followups"] };
}

/** The editor with the chat registered in it. */
export class Desk {
  readonly daemon = new FakeDaemon();
  readonly focus = new FakeFocus();
  readonly nextTurn = fakeNextTurn();
  readonly model = new FakeModel();
  readonly workspaceState = memento();
  readonly globalState = memento();
  allowed: boolean | undefined = true;
  /** The answer that is being made, or the last one. */
  shown: FakeStream | undefined;
  /** Titles of the buttons that the user presses, in this order, as soon as they are there. */
  readonly presses: string[] = [];
  handler!: (...args: unknown[]) => Promise<Result>;
  followups!: (result: Result) => { label: string; command?: string; prompt: string }[];

  constructor() {
    mock.mock.reset();
    mock.workspace.textDocuments = [];
    mock.workspace.workspaceFolders = [
      { uri: mock.Uri.parse(FOLDER), name: "ws", index: 0 },
      { uri: mock.Uri.parse(OTHER), name: "other", index: 1 },
    ];
    this.open();
  }

  /** Register the chat: again, as after the window was reloaded. */
  open(): void {
    mock.mock.commands.clear();
    registerChat(this.context(), this.daemon, this.focus, this.nextTurn);
    const made = mock.chat.participants.at(-1) as unknown as Made;
    this.handler = made.requestHandler;
    this.followups = (result) => made.followupProvider.provideFollowups(result);
  }

  thread(): Thread {
    return new Thread(this);
  }

  /** What a request said to the model, the last one by default: who, and the text of each part. */
  sent(index = -1): unknown[][] | undefined {
    return this.model.requests
      .at(index)
      ?.messages.map(({ role, content }) => [
        role === 1 ? "user" : "assistant",
        ...content.map((part) => Object.values(part as object)[0] as unknown),
      ]);
  }

  async press(button: { command: string; arguments?: unknown[] } | undefined): Promise<void> {
    await mock.commands.executeCommand(button?.command ?? "none", ...(button?.arguments ?? []));
  }

  pressNext(button: { title: string; command: string; arguments?: unknown[] }): void {
    if (button.title !== this.presses[0]) return;
    this.presses.shift();
    queueMicrotask(() => void this.press(button));
  }

  context(): api.ExtensionContext {
    return {
      workspaceState: this.workspaceState,
      globalState: this.globalState,
      extensionUri: mock.Uri.parse("file:///ext"),
      languageModelAccessInformation: { canSendRequest: () => this.allowed },
    } as unknown as api.ExtensionContext;
  }
}

function memento(): {
  get(key: string, fallback?: unknown): unknown;
  update(key: string, value: unknown): Promise<void>;
} {
  const kept = new Map<string, unknown>();
  return {
    get: (key, fallback) => kept.get(key) ?? fallback,
    update: async (key, value) => {
      kept.set(key, value);
    },
  };
}
