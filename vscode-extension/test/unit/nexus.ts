/** A daemon for the tests of parts: answers by method, and what it was asked. */
import * as vscode from "vscode";
import type { About, Documents } from "../../src/documents";
import { type NextTurn, type Nexus, NexusError, type ServerState } from "../../src/nexus";
import type {
  AgentDidChange,
  AssistantDidChange,
  ContextDidChange,
  McpDidChange,
  NextTurnParams,
  SessionDidChange,
  TokenUsage,
  UsageRow,
} from "../../src/protocol";
import type { Obstacle } from "../../src/server/remedies";

export interface FakeNexus extends Nexus {
  answers: Record<string, unknown>;
  readonly asked: [string, unknown][];
  become(state: ServerState, detail?: string, obstacle?: Obstacle): void;
  readonly contexts: vscode.EventEmitter<ContextDidChange>;
  readonly sessions: vscode.EventEmitter<SessionDidChange>;
  readonly agents: vscode.EventEmitter<AgentDidChange>;
  readonly assistants: vscode.EventEmitter<AssistantDidChange>;
  readonly servers: vscode.EventEmitter<McpDidChange>;
  restarts: number;
}

/** An answer that is a function gets the parameters; one that is an Error is thrown. */
export function fakeNexus(answers: Record<string, unknown> = {}): FakeNexus {
  const states = new vscode.EventEmitter<ServerState>();
  const contexts = new vscode.EventEmitter<ContextDidChange>();
  const sessions = new vscode.EventEmitter<SessionDidChange>();
  const agents = new vscode.EventEmitter<AgentDidChange>();
  const assistants = new vscode.EventEmitter<AssistantDidChange>();
  const servers = new vscode.EventEmitter<McpDidChange>();
  let [state, detail]: [ServerState, string] = ["ready", ""];
  let obstacle: Obstacle | undefined;
  const made: FakeNexus = {
    answers,
    asked: [],
    restarts: 0,
    contexts,
    sessions,
    agents,
    assistants,
    servers,
    get state() {
      return state;
    },
    get detail() {
      return detail;
    },
    get obstacle() {
      return obstacle;
    },
    onDidChangeState: states.event,
    onDidChangeContext: contexts.event,
    onDidChangeSession: sessions.event,
    onDidChangeAgent: agents.event,
    onDidChangeAssistant: assistants.event,
    onDidChangeServer: servers.event,
    become(next, why = "", inTheWay) {
      [state, detail, obstacle] = [next, why, inTheWay];
      states.fire(next);
    },
    async request(method, params) {
      made.asked.push([method, params]);
      if (!(method in made.answers)) throw new NexusError(`nothing to answer ${method} with`, "failed");
      const answer = made.answers[method];
      const given = typeof answer === "function" ? await answer(params) : answer;
      if (given instanceof Error) throw given;
      return given;
    },
    answer: () => new vscode.Disposable(() => undefined),
    async restart() {
      made.restarts++;
    },
  };
  return made;
}

export interface FakeNextTurn extends NextTurn {
  given: NextTurnParams;
  readonly changes: vscode.EventEmitter<void>;
  readonly learned: { attached: string[]; isPlain: boolean }[];
}

/** What is known of the next message: what a test sets. */
export function fakeNextTurn(): FakeNextTurn {
  const changes = new vscode.EventEmitter<void>();
  const made: FakeNextTurn = {
    given: {},
    changes,
    learned: [],
    onDidChange: changes.event,
    params: async () => made.given,
    async learn(attached, isPlain) {
      made.learned.push({ attached: attached.map(String), isPlain });
    },
  };
  return made;
}

export function usageOf(rows: Partial<UsageRow>[], given: Partial<TokenUsage> = {}): TokenUsage {
  const whole = rows.map((row): UsageRow => ({ category: "system", label: "x", tokens: 0, exact: true, ...row }));
  const total = whole.reduce((sum, row) => sum + row.tokens, 0);
  return {
    model: "gpt-4.1",
    limit: 204_000,
    limitKnown: true,
    reserved: 4_000,
    available: 200_000,
    total,
    remaining: 200_000 - total,
    percent: Math.round((total / 200_000) * 1_000) / 10,
    over: total > 200_000,
    counter: { name: "o200k_base", exact: true },
    rows: whole,
    ...given,
  };
}

/** The documents of the extension, as far as the parts that open one need them: what was opened, in order. */
export function fakeDocuments(): Documents & {
  opened: [About, string, vscode.Range | undefined][];
  compared: About[];
} {
  const opened: [About, string, vscode.Range | undefined][] = [];
  const compared: About[] = [];
  return {
    opened,
    compared,
    compare: async (about) => void compared.push(about),
    show: async (about, folderName, selection) => void opened.push([about, folderName, selection]),
    dispose: () => undefined,
  };
}
