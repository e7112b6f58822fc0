/**
 * The server of this window: found, started, started again when it ends, asked. It is a forwarder to the daemon of all
 * windows, or where the user wants that a daemon for this window alone.
 *
 * 1. One life at a time: `start` while one begins joins it; `restart` and `stop` end it first, wherever it is.
 * 2. A server that ends by itself comes back after a while that grows (`backoff`); one that cannot be found or started
 *    at all is not tried again until somebody asks.
 * 3. A restart by the user replaces the daemon of all windows: that of the forwarder alone would change nothing. The other
 *    windows go on with the next one. A restart for a setting or for trust is this window's alone.
 * 4. A request waits for a server that is on its way, starts one that was stopped, and is refused by one that failed.
 */
import * as vscode from "vscode";
import type { LensServer, ServerLens } from "../lenses";
import { type Answerer, type Nexus, NexusError, type ServerState, type ShowItems } from "../nexus";
import type {
  AgentDidChange,
  AssistantDidChange,
  ContextDidChange,
  McpDidChange,
  Questions,
  Requests,
  SessionDidChange,
} from "../protocol";
import type { Backoff } from "./backoff";
import type { Connection, ConnectOptions } from "./connection";
import { type Launch, serveArgs } from "./launch";
import { type Obstacle, type RemedyId, SetupError } from "./remedies";
import { shown } from "./versions";

export interface DaemonParts {
  /** `doing` is told when an installation begins and what it does. */
  readonly find: (doing: (state: "finding" | "installing", detail: string) => void) => Promise<Launch>;
  readonly connect: (
    launch: Launch,
    hooks: Pick<ConnectOptions, "notified" | "asked" | "ended">,
  ) => Promise<Connection>;
  /** Ends the daemon of all windows. */
  readonly stopShared: (launch: Launch) => Promise<void>;
  readonly backoff: Backoff;
  readonly log: (line: string) => void;
  /** Tells the user why there is no server, once per failure. */
  readonly failed: (message: string, remedies: readonly RemedyId[]) => void;
}

const NO_REQUEST = -32601;
const CANCELLED = [-32800, -32802];

export class Daemon implements Nexus, LensServer, vscode.Disposable {
  private now: ServerState = "stopped";
  private doing = "";
  private inTheWay: Obstacle | undefined;
  private connection: Connection | undefined;
  private launched: Launch | undefined;
  private beginning: Promise<void> | undefined;
  /** Whether the next start ends the daemon of all windows before. */
  private isReplacing = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts the lives: what an earlier one still says is not heard. */
  private life = 0;
  private readonly answerers = new Map<keyof Questions, (params: never, token: vscode.CancellationToken) => unknown>();
  private readonly states = new vscode.EventEmitter<ServerState>();
  private readonly contexts = new vscode.EventEmitter<ContextDidChange>();
  private readonly sessions = new vscode.EventEmitter<SessionDidChange>();
  private readonly agents = new vscode.EventEmitter<AgentDidChange>();
  private readonly assistants = new vscode.EventEmitter<AssistantDidChange>();
  private readonly servers = new vscode.EventEmitter<McpDidChange>();
  private readonly oldLenses = new vscode.EventEmitter<void>();

  readonly onDidChangeState = this.states.event;
  readonly onDidChangeContext = this.contexts.event;
  readonly onDidChangeSession = this.sessions.event;
  readonly onDidChangeAgent = this.agents.event;
  readonly onDidChangeAssistant = this.assistants.event;
  readonly onDidChangeServer = this.servers.event;
  readonly onDidChangeLenses = this.oldLenses.event;

  constructor(private readonly parts: DaemonParts) {}

  get state(): ServerState {
    return this.now;
  }

  get detail(): string {
    return this.doing;
  }

  get obstacle(): Obstacle | undefined {
    return this.inTheWay;
  }

  /** What was started last. */
  get launch(): Launch | undefined {
    return this.launched;
  }

  /** Resolves when the server is ready or has failed; never rejects. */
  start(): Promise<void> {
    if (this.now === "ready") return Promise.resolve();
    this.beginning ??= this.begin(++this.life).finally(() => {
      this.beginning = undefined;
    });
    return this.beginning;
  }

  async restart(): Promise<void> {
    // one that was never started, or was stopped, has nothing to do with the daemon of the others
    await this.again("Restarting the server", this.now !== "stopped");
  }

  /** Starts the server of this window again; the daemon of all windows stays. */
  async restartWindow(): Promise<void> {
    await this.again("Restarting the server of this window", false);
  }

  private async again(detail: string, isReplacing: boolean): Promise<void> {
    await this.end("finding", detail);
    if (this.now === "stopped") return; // meanwhile
    this.parts.backoff.reset();
    this.isReplacing = isReplacing;
    await this.start();
  }

  /** Ends the server, or what was on its way to it. */
  async stop(detail = ""): Promise<void> {
    await this.end("stopped", detail);
  }

  private async end(state: ServerState, detail: string): Promise<void> {
    this.life++;
    this.beginning = undefined;
    this.isReplacing = false;
    clearTimeout(this.timer);
    const connection = this.connection;
    this.connection = undefined;
    this.set(state, detail);
    await connection?.stop();
  }

  async request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    token?: vscode.CancellationToken,
    show?: ShowItems,
  ): Promise<Requests[M]["result"]> {
    return (await this.ask(method, params, token, show)) as Requests[M]["result"];
  }

  async lenses(uri: string, token: vscode.CancellationToken): Promise<readonly ServerLens[]> {
    const answer = await this.ask("textDocument/codeLens", { textDocument: { uri } }, token);
    return (answer as ServerLens[] | null) ?? [];
  }

  private async ask(
    method: string,
    params: unknown,
    token?: vscode.CancellationToken,
    show?: ShowItems,
  ): Promise<unknown> {
    const connection = await this.connected(token);
    try {
      return await connection.request(method, params, token, show);
    } catch (error) {
      throw this.refusal(method, error, connection);
    }
  }

  answer<M extends keyof Questions>(method: M, answerer: Answerer<M>): vscode.Disposable {
    this.answerers.set(method, answerer);
    return new vscode.Disposable(() => {
      if (this.answerers.get(method) === answerer) this.answerers.delete(method);
    });
  }

  dispose(): void {
    void this.stop();
    const { states, contexts, sessions, agents, assistants, servers, oldLenses } = this;
    for (const emitter of [states, contexts, sessions, agents, assistants, servers, oldLenses]) emitter.dispose();
  }

  private async begin(life: number): Promise<void> {
    clearTimeout(this.timer);
    try {
      this.set("finding", "Looking for the server");
      const launch = await this.parts.find((state, detail) => life === this.life && this.set(state, detail));
      if (life !== this.life) return;
      if (this.isReplacing && launch.isShared) {
        this.set("starting", "Restarting the server of all windows");
        await this.parts.stopShared(launch);
        if (life !== this.life) return;
      }
      this.isReplacing = false;
      const words = [launch.command, ...serveArgs(launch)].join(" ");
      this.parts.log(`Starting ${words} (${launch.from}, ${shown(launch.version)})`);
      this.set("starting", `Starting the server ${shown(launch.version)}`);
      await this.open(launch, life);
    } catch (error) {
      if (life === this.life) this.fail(error);
    }
  }

  private async open(launch: Launch, life: number): Promise<void> {
    const connection = await this.parts.connect(launch, {
      notified: (method, params) => this.notified(method, params),
      asked: (method, params, token) => this.asked(method, params, token),
      ended: () => this.ended(life),
    });
    if (life !== this.life) return connection.stop();
    this.connection = connection;
    this.launched = launch;
    this.parts.backoff.started();
    this.set("ready", `Nexus ${shown(launch.version)}`);
  }

  private fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.parts.log(message);
    if (error instanceof SetupError) {
      this.set(error.isQuiet ? "stopped" : "failed", message, error);
      if (!error.isQuiet) this.parts.failed(message, error.remedies);
      return;
    }
    const obstacle: Obstacle = { kind: "start-failed", remedies: ["restart", "output"] };
    this.set("failed", message, obstacle);
    this.parts.failed(`Nexus could not start. ${message}`, obstacle.remedies);
  }

  private ended(life: number): void {
    if (life !== this.life) return;
    this.connection = undefined;
    const wait = this.parts.backoff.ended();
    if (wait === undefined) {
      this.fail(new Error("The server ended again and again. The output says why."));
      return;
    }
    this.parts.log(`The server has ended; it is started again in ${wait / 1000} s.`);
    this.set("starting", `The server has ended; it is started again in ${wait / 1000} s`);
    this.life++;
    this.timer = setTimeout(() => void this.start(), wait);
  }

  private async connected(token: vscode.CancellationToken | undefined): Promise<Connection> {
    if (this.now === "stopped") void this.start();
    if (this.connection === undefined && this.now !== "failed") await this.settled(token);
    if (this.connection !== undefined) return this.connection;
    throw new NexusError(
      this.doing || "The Nexus server is not running. Restart it: Nexus: Restart Server.",
      "not-ready",
      this.inTheWay?.remedies,
    );
  }

  /** Until the server is ready, has failed or was stopped, or nobody waits any more. */
  private settled(token: vscode.CancellationToken | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const over = (then: () => void) => {
        listening.dispose();
        cancelling?.dispose();
        then();
      };
      const listening = this.onDidChangeState((state) => {
        if (state === "ready" || state === "failed" || state === "stopped") over(resolve);
      });
      const cancelling = token?.onCancellationRequested(() => {
        over(() => reject(new NexusError("Cancelled.", "cancelled")));
      });
    });
  }

  private refusal(method: string, error: unknown, connection: Connection): NexusError {
    if (this.connection !== connection) {
      return new NexusError("The Nexus server ended before it answered. Try again.", "not-ready");
    }
    const { message, code, data } = error as { message?: string; code?: unknown; data?: { code?: unknown } };
    if (error instanceof vscode.CancellationError || CANCELLED.includes(code as number)) {
      return new NexusError("Cancelled.", "cancelled");
    }
    if (code === NO_REQUEST) {
      return new NexusError(
        `This Nexus server does not know ${method}: it is older than the extension. Update it.`,
        "method-not-found",
      );
    }
    return new NexusError(message ?? String(error), typeof data?.code === "string" ? data.code : "failed");
  }

  private async asked(method: keyof Questions, params: unknown, token: vscode.CancellationToken): Promise<unknown> {
    const answerer = this.answerers.get(method);
    if (answerer === undefined) throw new Error(`nothing in this editor answers ${method}`);
    return await answerer(params as never, token);
  }

  private notified(method: string, params: unknown): void {
    if (method === "nexus/context/didChange") this.contexts.fire(params as ContextDidChange);
    else if (method === "nexus/session/didChange") this.sessions.fire(params as SessionDidChange);
    else if (method === "nexus/agent/didChange") this.agents.fire(params as AgentDidChange);
    else if (method === "nexus/assistant/didChange") this.assistants.fire(params as AssistantDidChange);
    else if (method === "nexus/mcp/didChange") this.servers.fire(params as McpDidChange);
    else if (method === "workspace/codeLens/refresh") this.oldLenses.fire();
  }

  private set(state: ServerState, detail: string, obstacle?: Obstacle): void {
    this.inTheWay = obstacle;
    if (state === this.now && detail === this.doing) return;
    this.now = state;
    this.doing = detail;
    this.states.fire(state);
  }
}
