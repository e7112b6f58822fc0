import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type * as vscode from "vscode";
import { type Focus, type Nexus, NexusError, type ServerState } from "../../src/nexus";
import { type Feed, feed, type View } from "../../src/panel/feed";
import type {
  AgentDidChange,
  AssistantDidChange,
  AssistantSessionInfo,
  ContextDidChange,
  McpDidChange,
  Requests,
  SessionDidChange,
} from "../../src/protocol";
import { fakeNextTurn } from "./nexus";
import { documented, example, FOLDER, usageOf, VIEWS } from "./panel-examples";
import { EventEmitter, events as editor, mock, Uri } from "./vscode";

const OTHER = "file:///home/ana/company/web";

/** A daemon that answers with the recorded examples, and a focus; what was asked is kept. */
function world() {
  const events = {
    state: new EventEmitter<ServerState>(),
    context: new EventEmitter<ContextDidChange>(),
    session: new EventEmitter<SessionDidChange>(),
    agent: new EventEmitter<AgentDidChange>(),
    assistant: new EventEmitter<AssistantDidChange>(),
    server: new EventEmitter<McpDidChange>(),
    focus: new EventEmitter<void>(),
  };
  const asked: [string, Record<string, unknown>][] = [];
  const failing = new Set<string>();
  const live: AssistantSessionInfo[] = [];
  let total: number | undefined;
  const nexus = {
    state: "ready" as ServerState,
    detail: "",
    onDidChangeState: events.state.event,
    onDidChangeContext: events.context.event,
    onDidChangeSession: events.session.event,
    onDidChangeAgent: events.agent.event,
    onDidChangeAssistant: events.assistant.event,
    onDidChangeServer: events.server.event,
    async request<M extends keyof Requests>(method: M, params: Requests[M]["params"]) {
      asked.push([method.replace("nexus/", ""), params as Record<string, unknown>]);
      if (failing.has(method)) throw new Error(`${method} failed`);
      if (method === "nexus/context/usage" && total !== undefined)
        return usageOf([{ category: "system", label: "x", tokens: total, exact: true }]);
      if (method === "nexus/assistant/sessions") return { sessions: live, failures: [] };
      if (method.startsWith("nexus/assistant/")) return documented(method);
      return method === "nexus/agent/list" ? { agents: [] } : example(method);
    },
  };
  const focus = {
    folder: Uri.parse(FOLDER) as unknown as vscode.Uri | undefined,
    session: "main",
    agent: undefined as string | undefined,
    assistant: undefined as string | undefined,
    views: VIEWS.views,
    get view() {
      return VIEWS.views.find(({ name }) => name === (focus.assistant ?? "nexus")) ?? VIEWS.views[0];
    },
    onDidChange: events.focus.event,
    setSession(session: string) {
      focus.session = session;
      events.focus.fire();
    },
    setAgent(agent: string | undefined) {
      focus.agent = agent;
      events.focus.fire();
    },
    pickView(assistant: string | undefined) {
      focus.assistant = assistant;
      events.focus.fire();
    },
  };
  const shown: View[] = [];
  const nextTurn = fakeNextTurn();
  const known = feed(nexus as unknown as Nexus, focus as unknown as Focus, nextTurn, (views) => shown.push(...views));
  return {
    events,
    nextTurn,
    asked,
    failing,
    live,
    nexus,
    focus,
    shown,
    known,
    costs: (tokens: number) => {
      total = tokens;
    },
    methods: () => asked.map(([method]) => method).sort(),
  };
}

const context = (more: Partial<ContextDidChange> = {}): ContextDidChange => ({
  workspaceFolder: FOLDER,
  revision: 2,
  reason: "instructions",
  usage: usageOf([{ category: "system", label: "x", tokens: 777, exact: true }]),
  ...more,
});
const settle = (ms = 10) => vi.advanceTimersByTimeAsync(ms);

let all: Feed[] = [];
function begin() {
  const made = world();
  all.push(made.known);
  return made;
}

beforeEach(() => {
  mock.reset();
  vi.useFakeTimers();
});
afterEach(() => {
  for (const one of all) one.dispose();
  all = [];
  vi.useRealTimers();
});

describe("the feed", () => {
  it("asks for nothing that nobody sees, and for each part once", async () => {
    const { known, asked, methods, shown } = begin();
    await settle(1_000);
    expect(asked).toEqual([]);
    known.look("rows", true);
    known.look("window", true);
    await settle();
    expect(methods()).toEqual([
      "assistant/sessions",
      "config/effective",
      "context/layers",
      "context/usage",
      "mcp/servers",
    ]);
    expect(asked.every(([, params]) => params.workspaceFolder === FOLDER)).toBe(true);
    expect(new Set(shown)).toEqual(new Set(["window", "rows", "layers", "sessions"]));
  });

  it("asks for the figures of the next message, also where a change brings those without it", async () => {
    const { known, events, asked, nextTurn } = begin();
    nextTurn.given = { attachments: [{ uri: `${FOLDER}/CLAUDE.md` }] };
    known.look("rows", true);
    await settle();
    asked.length = 0;
    events.context.fire(context({ reason: "session" }));
    await settle();
    expect(known.get("usage").value?.usage.total).toBe(618);
    nextTurn.changes.fire();
    await settle();
    const usage = ["context/usage", { workspaceFolder: FOLDER, session: "main", nextTurn: nextTurn.given }];
    expect(asked.filter(([method]) => method === "context/usage")).toEqual([usage, usage]);
  });

  it("asks once for another conversation's figures, however many changes come at once", async () => {
    const { known, events, asked, focus } = begin();
    focus.session = "plan";
    known.look("rows", true);
    await settle();
    asked.length = 0;
    for (let time = 0; time < 20; time++) events.context.fire(context({ reason: "session", session: "plan" }));
    events.session.fire({ workspaceFolder: FOLDER, session: "plan", reason: "appended", by: "other" });
    await settle();
    expect(asked).toEqual([["context/usage", { workspaceFolder: FOLDER, session: "plan", nextTurn: {} }]]);
  });

  it("follows an agent everywhere, and goes back when it ends", async () => {
    const { known, asked, focus, events } = begin();
    for (const view of ["window", "rows", "layers", "agents"] as const) known.look(view, true);
    await settle(500);
    asked.length = 0;
    focus.setAgent("reviewer");
    await settle(500);
    const scoped = asked.filter(([method]) => !/^(?:agent|assistant)\//.test(method));
    expect(scoped.map(([, { nextTurn: _, ...params }]) => params)).toEqual(
      scoped.map(() => ({ workspaceFolder: FOLDER, agent: "reviewer" })),
    );
    expect(scoped.length).toBe(5);
    events.agent.fire({ workspaceFolder: FOLDER, agentId: "reviewer", reason: "disposed" });
    expect(focus.agent).toBeUndefined();
  });

  it("asks for another assistant's view, and for who reads what, only while it is looked at", async () => {
    const { known, asked, focus, events } = begin();
    for (const view of ["window", "rows", "layers"] as const) known.look(view, true);
    await settle(500);
    expect(asked.map(([method]) => method).filter((method) => method.startsWith("assistant/"))).toEqual([
      "assistant/sessions",
    ]);
    asked.length = 0;
    focus.pickView("codex");
    await settle(500);
    const own = { workspaceFolder: FOLDER };
    expect(asked.sort(([one], [other]) => one.localeCompare(other))).toEqual([
      ["assistant/list", {}],
      ["assistant/readers", own],
      ["assistant/sessions", { ...own, assistant: "codex", live: true }],
      ["assistant/sessions", { ...own, live: true }],
      ["config/effective", own],
      ["context/layers", { ...own, assistant: "codex" }],
      ["context/preview", { ...own, assistant: "codex" }],
      ["context/usage", { ...own, assistant: "codex" }],
    ]);
    asked.length = 0;
    events.context.fire(context());
    await settle(500);
    expect(asked.map(([method]) => method).sort()).toEqual([
      "assistant/readers",
      "assistant/sessions",
      "context/layers",
      "context/preview",
      "context/usage",
    ]);
  });

  it("asks for the MCP servers again when one of the folder has another state, and for nothing else", async () => {
    const { known, asked, focus, events } = begin();
    known.look("layers", true);
    await settle(500);
    asked.length = 0;
    events.server.fire({ workspaceFolder: "file:///elsewhere", server: "notes", state: "ready" });
    await settle(500);
    expect(asked).toEqual([]);
    events.server.fire({ workspaceFolder: FOLDER, server: "notes", state: "ready" });
    await settle(500);
    expect(asked).toEqual([["mcp/servers", { workspaceFolder: FOLDER }]]);
    focus.pickView("codex");
    asked.length = 0;
    events.server.fire({ workspaceFolder: FOLDER, server: "notes", state: "failed" });
    await settle(500);
    expect(asked.map(([method]) => method)).not.toContain("mcp/servers");
  });

  it("asks again when a file of an assistant is written or typed in", async () => {
    const { known, asked, focus } = begin();
    known.look("window", true);
    await settle(500);
    asked.length = 0;
    const typed = { document: { isDirty: true, uri: Uri.parse(`${FOLDER}/.claude/rules/a.md`) } };
    editor.text.fire(typed);
    await settle(500);
    expect(asked).toEqual([]);
    focus.pickView("claude-code");
    await settle(500);
    asked.length = 0;
    editor.text.fire(typed);
    await settle(500);
    expect(asked.map(([method]) => method)).toContain("context/usage");
  });

  it("has the window of an assistant's session that runs here, and follows it", async () => {
    const { known, asked, focus, events, live } = begin();
    const { session } = documented("nexus/assistant/session");
    live.push({ ...session, live: true, id: "sub", parent: session.id }, { ...session, live: true });
    known.look("window", true);
    await settle(500);
    focus.pickView("claude-code");
    await settle(500);
    expect(asked.filter(([method]) => method === "assistant/session")).toEqual([
      ["assistant/session", { workspaceFolder: FOLDER, assistant: "claude-code", id: session.id }],
    ]);
    expect(known.get("usage").value).toMatchObject({ usage: session.usage, report: { requests: 4 } });
    asked.length = 0;
    const change = { workspaceFolder: FOLDER, id: session.id, reason: "changed" } as const;
    events.assistant.fire({ ...change, assistant: "claude-code" });
    await settle(500);
    expect(asked.map(([method]) => method).sort()).toEqual([
      "assistant/session",
      "assistant/sessions",
      "assistant/sessions",
    ]);
    asked.length = 0;
    events.assistant.fire({ ...change, assistant: "codex" });
    await settle(500);
    expect(asked.map(([method]) => method)).toEqual(["assistant/sessions"]);
  });

  it("goes back to Nexus where the server does not know the assistant", async () => {
    const { known, nexus, focus } = begin();
    known.look("window", true);
    const { request } = nexus;
    vi.spyOn(nexus, "request").mockImplementation(async (method, params) => {
      if (method === "nexus/context/usage" && "assistant" in params)
        throw new NexusError("There is no assistant.", "unknown-assistant");
      return request(method, params);
    });
    focus.pickView("gone");
    await settle();
    expect(focus.assistant).toBeUndefined();
  });

  it("follows a conversation that another window renames or deletes", async () => {
    const { events, focus } = begin();
    focus.setSession("plan");
    const change = { workspaceFolder: FOLDER, by: "other" } as const;
    events.session.fire({ ...change, session: "other", reason: "deleted" });
    expect(focus.session).toBe("plan");
    events.session.fire({ ...change, session: "plan B", former: "plan", reason: "renamed" });
    expect(focus.session).toBe("plan B");
    events.session.fire({ ...change, session: "plan B", reason: "deleted" });
    expect(focus.session).toBe("main");
  });

  it("looks back at main where the agent is gone", async () => {
    const { known, nexus, focus } = begin();
    known.look("window", true);
    const { request } = nexus;
    vi.spyOn(nexus, "request").mockImplementation(async (method, params) => {
      if ("agent" in params) throw new NexusError("No live agent has that name.", "unknown-agent");
      return request(method, params);
    });
    focus.setAgent("reviewer");
    await settle();
    expect(focus.agent).toBeUndefined();
    await settle();
    expect([known.get("usage").value?.scope.agent, known.get("usage").trouble]).toEqual([undefined, undefined]);
  });

  it("keeps old figures until the new ones are there, and says that they are old", async () => {
    const { known, focus, events } = begin();
    known.look("rows", true);
    await settle();
    focus.session = "plan";
    events.focus.fire();
    expect([known.get("usage").stale, known.get("usage").value?.scope.session]).toEqual([true, "main"]);
    await settle();
    expect([known.get("usage").stale, known.get("usage").value?.scope.session]).toEqual([false, "plan"]);
  });

  it("other folders' changes are nothing to it; another way to write the folder is", async () => {
    const { known, events, costs } = begin();
    known.look("rows", true);
    await settle();
    costs(777);
    events.context.fire(context({ workspaceFolder: OTHER }));
    await settle();
    expect(known.get("usage").value?.usage.total).toBe(618);
    events.context.fire(context({ workspaceFolder: FOLDER.replace("-", "%2D") }));
    await settle();
    expect(known.get("usage").value?.usage.total).toBe(777);
  });

  it("one failure leaves the others as they are", async () => {
    const { known, failing } = begin();
    failing.add("nexus/context/layers");
    known.look("window", true);
    await settle();
    expect(known.get("layers").trouble).toBe("nexus/context/layers failed");
    expect(known.get("usage").value?.usage.total).toBe(618);
    expect(known.get("usage").trouble).toBeUndefined();
    failing.clear();
    await settle(1_010);
    expect(known.get("layers").value?.layers.length).toBe(5);
  });

  it("asks again for all that is seen when the server is back", async () => {
    const { known, events, nexus, asked } = begin();
    known.look("sessions", true);
    await settle();
    nexus.state = "starting";
    events.state.fire("starting");
    asked.length = 0;
    events.session.fire({ workspaceFolder: FOLDER, session: "main", reason: "created", by: "other" });
    await settle(2_000);
    expect(asked).toEqual([]);
    nexus.state = "ready";
    events.state.fire("ready");
    await settle();
    expect(asked.map(([method]) => method)).toEqual(["session/list", "conversation/list", "assistant/sessions"]);
  });

  it("remembers the last compaction of the conversation that is looked at", async () => {
    const { known, events, focus } = begin();
    const tell = (session: string, reason: string) =>
      events.session.fire({ workspaceFolder: FOLDER, session, reason, by: "self" });
    tell("plan", "compacted");
    expect(known.compaction).toBeUndefined();
    tell("main", "compacted");
    expect(known.compaction).toMatchObject({ undone: false });
    focus.setSession("plan");
    tell("plan", "undone");
    expect(known.compaction).toMatchObject({ undone: true });
    focus.setSession("main");
    expect(known.compaction).toMatchObject({ undone: false });
    tell("main", "undone");
    expect(known.compaction).toMatchObject({ undone: true });
    tell("main", "cleared");
    expect(known.compaction).toBeUndefined();
  });

  it("lists agents with what their next message costs, anew where that changes", async () => {
    const { known, nexus, nextTurn } = begin();
    const { request } = nexus;
    const agents = [{ agentId: "reviewer", usage: usageOf([]) }];
    const totals: Record<string, number> = { files: 40, none: 30 };
    vi.spyOn(nexus, "request").mockImplementation(async (method, params) => {
      if (method === "nexus/agent/list") return { agents } as never;
      const { agent, nextTurn: next } = params as Requests["nexus/context/usage"]["params"];
      if (method !== "nexus/context/usage" || agent !== "reviewer") return request(method, params);
      const tokens = totals[next?.attachments?.length ? "files" : "none"] ?? 0;
      return usageOf([{ category: "system", label: "x", tokens, exact: true }]) as never;
    });
    known.look("agents", true);
    await settle();
    expect(known.get("agents").value?.map(({ usage }) => usage.total)).toEqual([30]);
    nextTurn.given = { attachments: [{ uri: `${FOLDER}/CLAUDE.md` }] };
    nextTurn.changes.fire();
    await settle();
    expect(known.get("agents").value?.map(({ usage }) => usage.total)).toEqual([40]);
  });

  it("remembers the last compaction of a viewed agent's own conversation", async () => {
    const { known, events, nexus, focus } = begin();
    const { request } = nexus;
    vi.spyOn(nexus, "request").mockImplementation(async (method, params) =>
      method === "nexus/agent/list"
        ? ({ agents: [{ agentId: "reviewer", session: "agent:reviewer" }] } as never)
        : request(method, params),
    );
    known.look("window", true);
    focus.setAgent("reviewer");
    await settle();
    const change = { workspaceFolder: FOLDER, by: "self", reason: "compacted" } as const;
    events.session.fire({ ...change, session: "main" });
    expect(known.compaction).toBeUndefined();
    events.session.fire({ ...change, session: "agent:reviewer" });
    expect(known.compaction).toMatchObject({ undone: false });
  });

  it("what is typed costs one request a part, however fast, and none for the settings", async () => {
    const { known, events, methods, asked } = begin();
    known.look("window", true);
    await settle(500);
    asked.length = 0;
    for (let time = 0; time < 30; time++) events.context.fire(context());
    await settle(500);
    expect(methods()).toEqual(["context/layers", "context/usage"]);
    asked.length = 0;
    events.context.fire(context({ reason: "config" }));
    await settle(500);
    expect(methods()).toEqual([
      "assistant/sessions",
      "config/effective",
      "context/layers",
      "context/usage",
      "mcp/servers",
    ]);
  });
});
