/** A daemon in memory, for the tests of the chat. */
import { setTimeout as later } from "node:timers/promises";
import type * as api from "vscode";
import { type Answerer, type Nexus, NexusError, type ServerState, type ShowItems } from "../../src/nexus";
import type {
  AgentInfo,
  AppendResult,
  ChatItem,
  ChatSendResult,
  Json,
  LayerFile,
  Message,
  ParameterValue,
  Questions,
  Requests,
  ServerInfo,
  ServerTool,
  SessionDidChange,
  SessionInfo,
  TokenUsage,
  UsageRow,
} from "../../src/protocol";
import * as mock from "./vscode";

export const FOLDER = "file:///ws";
export const OTHER = "file:///other";

interface Session {
  thread: string;
  turns: { id: string; messages: Message[]; key: string }[];
}

type Method = keyof Requests;
type Params<M extends Method> = Requests[M]["params"];

/** It keeps sessions as the real one does: keys, forks by `parentTurn`, renames that keep the thread. */
export class FakeDaemon implements Nexus {
  state: ServerState = "ready";
  detail = "";
  readonly obstacle = undefined;
  readonly states = new mock.EventEmitter<ServerState>();
  readonly onDidChangeState = this.states.event as unknown as api.Event<ServerState>;
  readonly onDidChangeContext = new mock.EventEmitter().event as never;
  readonly changes = new mock.EventEmitter<SessionDidChange>();
  readonly onDidChangeSession = this.changes.event as never;
  readonly onDidChangeAssistant = new mock.EventEmitter().event as never;
  readonly onDidChangeServer = new mock.EventEmitter().event as never;
  readonly onDidChangeAgent = new mock.EventEmitter().event as never;
  readonly asked: { method: Method; params: Record<string, unknown> }[] = [];
  readonly sessions = new Map<string, Session>();
  agents: AgentInfo[] = [];
  configured: Record<string, Json> = {};
  /** Errors that the next requests of a method end with; `after`: only after they were carried out. */
  readonly failures: { method: Method; error: Error; after?: boolean }[] = [];
  /** What `assemble` says beside the ordinary. */
  metadata: Record<string, unknown> = {};
  rows: UsageRow[] = [row("system", "Project Configuration", 29, `${FOLDER}/.nexus3/NEXUS.md`)];
  tools: Record<string, Json>[] = [];
  /** MCP servers of the folder. */
  servers: ServerInfo[] = [];
  /** What a tool of a server answers, where the model is sent a part of it. */
  whole: string | undefined;
  /** Whether the model is sent the tools of servers only when it looks for them. */
  defers = false;
  /** Tools of a turn that the settings leave out, with the reason. */
  leftOut: Record<string, string> = {};
  parameters: Record<string, ParameterValue> = {};
  /** Names of the folder's skills. */
  skills: string[] = [];
  /** Names of skills whose files have errors. */
  brokenSkills: string[] = [];
  /** Fields of the body besides model, messages and tools. */
  fields: Record<string, Json> = {};
  percent = 10;
  starts = 0;
  complete: Answerer<"nexus/model/complete"> | undefined;
  approve: Answerer<"nexus/tool/approve"> | undefined;
  /** The provider that the settings name. */
  provider: string | undefined;
  /** What the provider's model says in the next turn: items, errors, and functions that are run between them. */
  turn: (ChatItem | Error | (() => unknown))[] = [];
  private made = 0;

  async request<M extends Method>(
    method: M,
    params: Params<M>,
    token?: api.CancellationToken,
    show?: ShowItems,
  ): Promise<Requests[M]["result"]> {
    await this.answering(token);
    this.asked.push({ method, params: structuredClone(params) as Record<string, unknown> });
    const index = this.failures.findIndex((failure) => failure.method === method);
    const failure = index < 0 ? undefined : this.failures.splice(index, 1)[0];
    if (failure !== undefined && failure.after !== true) {
      throw failure.error;
    }
    const answer =
      method === "nexus/chat/send"
        ? await this.send(params as Params<"nexus/chat/send">, show, token)
        : this.answerOf(method, params as never);
    if (failure !== undefined) {
      throw failure.error;
    }
    return answer as Requests[M]["result"];
  }

  answer<M extends keyof Questions>(method: M, answerer: Answerer<M>): api.Disposable {
    Object.assign(this, { [method === "nexus/model/complete" ? "complete" : "approve"]: answerer });
    return new mock.Disposable(() => undefined);
  }

  async restart(): Promise<void> {
    this.starts++;
    this.become("starting");
    await later(1);
    this.become("ready");
  }

  /** A request starts a server that was stopped, waits for one that starts, and is refused by one that failed. */
  private async answering(token: api.CancellationToken | undefined): Promise<void> {
    if (this.state === "stopped") await this.restart();
    while (this.state !== "ready") {
      if (token?.isCancellationRequested === true) throw new NexusError("Cancelled.", "cancelled");
      if (this.state === "failed") throw new NexusError(this.detail, "not-ready");
      await later(1);
    }
  }

  become(state: ServerState, detail = ""): void {
    this.state = state;
    this.detail = detail;
    this.states.fire(state);
  }

  paramsOf(method: Method): Record<string, unknown>[] {
    return this.asked.filter((one) => one.method === method).map((one) => one.params);
  }

  /** What a session holds, without the ids. */
  said(session: string): Message[] {
    return this.sessions.get(session)?.turns.flatMap((turn) => turn.messages) ?? [];
  }

  begin(session: string, turns: Message[][] = []): Session {
    const made: Session = { thread: `t${++this.made}`, turns: [] };
    this.sessions.set(session, made);
    for (const messages of turns) {
      made.turns.push({ id: `${made.thread}-${made.turns.length + 1}`, messages, key: "" });
    }
    return made;
  }

  private answerOf(method: Method, params: Record<string, Json>): unknown {
    const { session = "main", to = "", turn, workspaceFolder = "" } = params as Record<string, string>;
    switch (method) {
      case "nexus/session/list":
        return { sessions: [...this.sessions].map(([name, one]) => info(name, one)) };
      case "nexus/session/create":
        return { session, thread: this.begin(session).thread };
      case "nexus/session/fork":
        return this.fork(session, to, turn);
      case "nexus/session/append":
        return this.append(session, params as unknown as Params<"nexus/session/append">);
      case "nexus/session/compact":
        return { compaction: "c1", receipt: RECEIPT, usage: this.usage() };
      case "nexus/session/undoCompaction":
        return { session, usage: this.usage() };
      case "nexus/context/assemble":
        return this.assemble(session, params as unknown as Params<"nexus/context/assemble">);
      case "nexus/context/layers":
        return {
          revision: 1,
          layers: [
            {
              name: "local",
              path: "/ws/.nexus3",
              files: [
                { kind: "instructions", uri: `${FOLDER}/.nexus3/NEXUS.md`, status: "loaded" },
                ...this.skills.map((skill) => skillFile(skill)),
                ...this.brokenSkills.map((skill) => ({ kind: "skill", uri: skillUri(skill), status: "loaded" })),
              ],
            },
          ],
          skipped: [],
          problems: this.brokenSkills.map((skill) => ({
            uri: skillUri(skill),
            range: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } },
            severity: 1,
            code: "skill.front-matter",
            message: "A skill begins with a description.",
          })),
          counter: { name: "o200k_base", exact: false },
        };
      case "nexus/memory/query":
        return { text: `found by ${String(params.tool)}` };
      case "nexus/skill/read": {
        const { name } = params.arguments as { name: string };
        if (!this.skills.includes(name)) throw new NexusError(`There is no skill ${name}.`, "unknown-skill");
        return { text: `text of ${name}` };
      }
      case "nexus/agent/call":
        return { text: `done by ${String(params.tool)}`, isError: false };
      case "nexus/mcp/servers":
        return { servers: this.servers, tokens: 0 };
      case "nexus/mcp/call":
        return {
          content: [],
          isError: false,
          tokens: 9,
          text: `data of ${String(params.tool)}`,
          ...(this.whole === undefined ? {} : { whole: this.whole }),
        };
      case "nexus/mcp/prompt":
        return { text: `prompt ${String(params.prompt)} of ${String(params.server)}`, tokens: 4 };
      case "nexus/mcp/resource":
        if (String(params.uri).startsWith("broken:")) throw new NexusError("There is no such resource.", "mcp-refused");
        return { text: `data of ${String(params.uri)}`, tokens: 4 };
      case "nexus/mcp/search":
        return { text: "found", tokens: 1, tools: this.servers.flatMap(({ tools = [] }) => tools.map(asOffered)) };
      case "nexus/config/effective":
        return {
          revision: 1,
          config: { agents: this.configured, ...this.providerSetting() },
          provenance: {},
          mcpServers: [],
        };
      case "nexus/context/usage":
        return { ...this.usage(), total: 1250, counter: { name: "o200k_base", exact: true } };
      case "nexus/session/receipt":
        return { session, receipt: RECEIPT, inForce: true };
      case "nexus/agent/list":
        return { agents: this.agents };
      case "nexus/agent/spawn":
        this.begin(`agent:${String(params.agentId)}`);
        return { agentId: params.agentId, session: `agent:${String(params.agentId)}`, usage: this.usage() };
      case "nexus/status":
        return {};
      case "nexus/workspace/init":
        return { created: [`${workspaceFolder}/.nexus3/NEXUS.md`], existing: [`${workspaceFolder}/.nexus3/mcp.json`] };
      default:
        throw new NexusError(`The fake daemon has no ${method}.`, "method-not-found");
    }
  }

  private providerSetting(): Record<string, Json> {
    return this.provider === undefined ? {} : { provider: { name: this.provider } };
  }

  /** A turn as the real daemon takes one: what was said is recorded, however the turn ends. */
  private async send(
    { session: name, message, workspaceFolder }: Params<"nexus/chat/send">,
    show: ShowItems | undefined,
    token: api.CancellationToken | undefined,
  ): Promise<ChatSendResult> {
    const session = name ?? "main";
    const parentTurn = this.sessions.get(session)?.turns.at(-1)?.id;
    let text = "";
    const record = (): AppendResult => {
      const messages = [message as Message, { role: "assistant" as const, content: text }];
      const params = {
        workspaceFolder,
        session,
        messages,
        idempotencyKey: String(++this.made),
        ...(parentTurn && { parentTurn }),
      };
      const appended = this.append(session, params);
      const change = { workspaceFolder, session: appended.session, reason: "appended", by: "self" as const };
      this.changes.fire({ ...change, turn: appended.turn });
      return appended;
    };
    for (const item of this.turn.splice(0)) {
      if (typeof item === "function") await item();
      if (token?.isCancellationRequested === true) {
        setTimeout(record, 1); // the reply to a cancellation comes before what was said is recorded
        throw new NexusError("Cancelled.", "cancelled");
      }
      if (item instanceof Error) {
        if (text !== "") record();
        throw item;
      }
      if (typeof item === "function") continue;
      text += item.kind === "text" ? item.text : "";
      show?.([item]);
    }
    return {
      ...record(),
      message: { role: "assistant", content: text },
      stopReason: "end_turn",
      steps: 1,
      spending: { tokens: 240, usd: 0.0021 },
      model: "claude-sonnet-4-6",
    };
  }

  private fork(from: string, to: string, turn: string | undefined): { session: string; thread: string } {
    const source = this.sessions.get(from);
    if (source === undefined) {
      throw new NexusError(`There is no session ${from}.`, "unknown-session");
    }
    const until = turn === undefined ? source.turns.length : source.turns.findIndex((one) => one.id === turn) + 1;
    const made = this.begin(to);
    made.turns.push(...source.turns.slice(0, until));
    return { session: to, thread: made.thread };
  }

  private append(session: string, params: Params<"nexus/session/append">): AppendResult {
    const { messages, idempotencyKey, parentTurn } = params;
    const before = [...this.sessions].find(([, one]) => one.turns.some((turn) => turn.key === idempotencyKey));
    if (before !== undefined) {
      const turn = before[1].turns.find((one) => one.key === idempotencyKey);
      return { session: before[0], turn: turn?.id ?? "", count: 0, usage: this.usage() };
    }
    const found = this.sessions.get(session) ?? this.begin(session);
    const head = found.turns.at(-1)?.id ?? null;
    const isForked = parentTurn !== undefined && parentTurn !== head;
    const name = isForked ? this.fork(session, `${session} (2)`, parentTurn ?? "").session : session;
    const target = this.sessions.get(name) ?? found;
    const id = `${target.thread}-${target.turns.length + 1}`;
    target.turns.push({ id, messages, key: idempotencyKey ?? "" });
    return { session: name, turn: id, count: 1, usage: this.usage(), ...(isForked ? { forked: true } : {}) };
  }

  private assemble(session: string, params: Params<"nexus/context/assemble">): unknown {
    const { message, options, turnTools = [] } = params;
    const unknown = options?.skills?.find((skill) => !this.skills.includes(skill));
    if (unknown !== undefined) {
      const names = this.skills.join(", ");
      throw new NexusError(`There is no skill ${unknown}. Skills: ${names}.`, "unknown-skill");
    }
    const history = this.said(session).map(inBody);
    const asked = message === undefined || message === null ? [] : [{ role: "user", content: message }];
    const parentTurn = this.sessions.get(session)?.turns.at(-1)?.id;
    return {
      revision: 1,
      workspaceFolder: params.workspaceFolder,
      session,
      tools: [
        ...(options?.memoryTools || options?.skillTools || options?.agentTools ? this.tools : []),
        ...(options?.mcpTools ? this.serverTools() : []),
        ...turnTools.filter((tool) => !(String(tool.name) in this.leftOut)),
      ],
      parameters: this.parameters,
      model: options?.model ?? "",
      usage: this.usage(),
      metadata: {
        truncated: false,
        shouldCompact: false,
        wantedPercent: 10,
        ...(Object.keys(this.leftOut).length === 0 ? {} : { toolsLeftOut: this.leftOut }),
        ...this.metadata,
      },
      problems: [],
      request: {
        model: "fake-1",
        ...this.fields,
        messages: [{ role: "system", content: "You are Nexus." }, ...history, ...asked],
      },
      ...(parentTurn === undefined ? {} : { parentTurn }),
    };
  }

  private serverTools(): Record<string, Json>[] {
    if (this.defers) return [{ name: "search_tools", inputSchema: { type: "object", properties: {} } }];
    return this.servers.flatMap(({ tools = [] }) => tools.map(asOffered));
  }

  private usage(): TokenUsage {
    const total = this.rows.reduce((sum, one) => sum + one.tokens, 0);
    return {
      model: "fake-1",
      limit: 32000,
      limitKnown: true,
      reserved: 2000,
      available: 30000,
      total,
      remaining: 30000 - total,
      percent: this.percent,
      over: false,
      counter: { name: "o200k_base", exact: false },
      rows: this.rows,
    };
  }
}

export const RECEIPT = {
  id: "c1",
  reason: "explicit",
  summarizer: "extractive",
  replacedMessages: 21,
  tokensBefore: 1675,
  tokensAfter: 535,
  created: "2026-11-20T12:00:00.000Z",
  lost: {
    paths: ["auth/tokens.py"],
    commands: [],
    identifiers: [],
    errors: [],
    instructions: [],
    decisions: [],
    counts: { paths: 1 },
  },
  failures: [],
};

export function row(category: UsageRow["category"], label: string, tokens: number, uri?: string): UsageRow {
  const range = { start: { line: 2, character: 0 }, end: { line: 4, character: 0 } };
  return { category, label, tokens, exact: false, ...(uri === undefined ? {} : { source: { uri, range } }) };
}

function skillUri(name: string): string {
  return `${FOLDER}/.nexus3/skills/${encodeURIComponent(name)}/SKILL.md`;
}

function skillFile(name: string): LayerFile {
  return {
    kind: "skill",
    uri: skillUri(name),
    status: "loaded",
    tokens: 12,
    name,
    description: `Does ${name} | well.`,
  };
}

function info(session: string, one: Session): SessionInfo {
  const messages = one.turns.reduce((sum, turn) => sum + turn.messages.length, 0);
  return { session, thread: one.thread, turns: one.turns.length, messages, tokens: messages, created: "", updated: "" };
}

function inBody({ role, content, toolCalls, toolCallId }: Message): Record<string, unknown> {
  return {
    role,
    content: content ?? null,
    ...(toolCalls === undefined
      ? {}
      : {
          tool_calls: toolCalls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: JSON.stringify(call.arguments) },
          })),
        }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
  };
}

function asOffered({ offeredAs, description }: ServerTool): Record<string, Json> {
  return { name: offeredAs, description, parameters: { type: "object", properties: { path: { type: "string" } } } };
}
