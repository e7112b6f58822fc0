import { describe, expect, it } from "vitest";
import { agentNodes } from "../../src/panel/agents";
import { layerNodes } from "../../src/panel/layers";
import { changes, type Node, textOf, walk } from "../../src/panel/node";
import { rowTrees } from "../../src/panel/rows";
import { PAGE, sessionNodes } from "../../src/panel/sessions";
import type { AgentInfo, ConversationInfo, ConversationListResult, SessionInfo, UsageRow } from "../../src/protocol";
import { documented, example, FOLDER, usageOf } from "./panel-examples";

/** A tree as text: two blanks a level, `label | description`. */
function drawn(nodes: readonly Node[], indent = ""): string {
  const line = (node: Node) =>
    `${indent}${node.label}${node.description === undefined ? "" : ` | ${node.description}`}\n`;
  return nodes.map((node) => line(node) + drawn(node.children ?? [], `${indent}  `)).join("");
}

const ids = (nodes: readonly Node[]) => [...walk(nodes)].map(([node]) => node.id);

const rowNodes: ReturnType<typeof rowTrees> = (given) => rowTrees()(given);

const system = (label: string, tokens: number): UsageRow => ({ category: "system", label, tokens, exact: true });

describe("rows", () => {
  it("of a real answer: by category, imports below the section that imports them", () => {
    const nodes = rowNodes({ usage: example("nexus/context/usage"), folder: FOLDER });
    expect(drawn(nodes)).toBe(`\
System prompt | 550 · 0.1 %
  System Configuration | 4 · < 0.1 %
  Global Configuration | 43 · < 0.1 %
  Ancestor: company | 74 · < 0.1 %
  Ancestor: backend | 99 · < 0.1 %
  Project Configuration | 140 · < 0.1 %
    threats.md | 47 · < 0.1 %
  Capabilities | 21 · < 0.1 %
  Environment | 42 · < 0.1 %
  Active Configuration | 28 · < 0.1 %
  MCP Servers | 52 · < 0.1 %
History | 68 · < 0.1 %
  4 messages | 68 · < 0.1 %
`);
  });

  it("what only the next message is sent with stands below why it is sent", () => {
    const memory = (label: string, tokens: number) => ({ category: "memory" as const, label, tokens, exact: true });
    const rows = [
      memory("For these files: py.instructions.md", 7),
      memory("Attached by the editor: CLAUDE.md", 10),
      memory("Attached by the editor: a: b.md", 20),
      memory("from bob", 3),
    ];
    const nodes = rowNodes({ usage: { ...example("nexus/context/usage"), rows }, folder: FOLDER });
    expect(drawn(nodes)).toBe(`\
Memory | 40 · < 0.1 %
  For these files | 7 · < 0.1 %
    py.instructions.md | 7 · < 0.1 %
  Attached by the editor | 30 · < 0.1 %
    CLAUDE.md | 10 · < 0.1 %
    a: b.md | 20 · < 0.1 %
  from bob | 3 · < 0.1 %
`);
  });

  it("of the answer that is documented today: every row once, each category the sum of its rows", () => {
    const usage = documented("nexus/context/usage");
    const nodes = rowNodes({ usage, folder: FOLDER });
    const leaves = [...walk(nodes)].filter(([, parent]) => parent !== undefined);
    expect(leaves.length).toBe(usage.rows.length);
    for (const category of new Set(usage.rows.map((row) => row.category))) {
      const own = usage.rows.filter((row) => row.category === category);
      const sum = own.reduce((total, row) => total + row.tokens, 0);
      const node = nodes.find(({ id }) => id === `category:${category}`);
      expect(node?.description).toMatch(new RegExp(`^${sum.toLocaleString("en-US")} · `));
    }
  });

  it("lead to their source, say where it is, and are spoken as sentences", () => {
    const nodes = rowNodes({ usage: example("nexus/context/usage"), folder: FOLDER });
    const [imported] = [...walk(nodes)].map(([node]) => node).filter((node) => node.label === "threats.md");
    expect(imported).toMatchObject({
      command: "nexus.panel.openSource",
      context: "row.source.prompt",
      subject: { source: { uri: `${FOLDER}/.nexus3/docs/threats.md`, range: { end: { line: 4, character: 57 } } } },
    });
    expect(textOf(imported?.spoken)).toBe(
      "threats.md, 47 tokens, exact, < 0.1 % of what is available, from .nexus3/docs/threats.md:1–5",
    );
    const [history] = [...walk(nodes)].map(([node]) => node).filter((node) => node.label === "4 messages");
    expect(history?.command).toBeUndefined();
  });

  it("keep the row of a conversation while it grows, and mark estimates", () => {
    const row = (label: string, tokens: number): UsageRow => ({ category: "history", label, tokens, exact: false });
    const before = rowNodes({ usage: usageOf([row("1 message", 10)]), folder: FOLDER });
    const after = rowNodes({ usage: usageOf([row("1,204 messages", 90_000)]), folder: FOLDER });
    expect(ids(after)).toEqual(ids(before));
    expect(drawn(after)).toBe("History | ≈ 90,000 · 48.9 %\n  1,204 messages | ≈ 90,000 · 48.9 %\n");
  });

  it("of a history lead to the first message that they are about", () => {
    const row: UsageRow = { category: "history", label: "2 messages", tokens: 9, exact: true, message: 0 };
    const nodes = rowNodes({ usage: usageOf([row]), folder: FOLDER });
    expect(nodes[0]?.children?.[0]).toMatchObject({
      command: "nexus.showTranscript",
      subject: { folder: FOLDER, message: 0 },
    });
  });

  it("put tools below the server whose name they begin with, however it is written", () => {
    const tool = (label: string): UsageRow => ({ category: "tools", label, tokens: 100, exact: true });
    const usage = usageOf(
      ["git__log", "mcp__git__show", "files.read", "mcp__my_notes__a_1f", "filesystem", "search"].map(tool),
    );
    const nodes = rowNodes({ usage, folder: FOLDER, servers: ["files", "git", "my notes", "unused.*"] });
    expect(drawn(nodes)).toBe(`\
Tools | 600 · 0.3 %
  git | 200 · 0.1 % · 2 tools
    git__log | 100 · 0.1 %
    mcp__git__show | 100 · 0.1 %
  files | 100 · 0.1 % · 1 tool
    files.read | 100 · 0.1 %
  my notes | 100 · 0.1 % · 1 tool
    mcp__my_notes__a_1f | 100 · 0.1 %
  filesystem | 100 · 0.1 %
  search | 100 · 0.1 %
`);
  });

  it("say what is sent later, at the tools alone", () => {
    const tool: UsageRow = { category: "tools", label: "search_tools", tokens: 9, exact: true };
    const usage = { ...usageOf([system("Notes", 1), tool]), deferredTokens: 1_234 };
    const said = rowNodes({ usage, folder: FOLDER }).map(({ tooltip }) => textOf(tooltip));
    expect(said[0]).not.toContain("MCP");
    expect(said[1]).toContain("1,234 tokens of MCP tools are sent when the model looks for them");
  });

  it("of the same label have ids of their own; an unknown category is shown as it is", () => {
    const later = { ...system("x", 1), category: "later" as "system" };
    const nodes = rowNodes({ usage: usageOf([system("Notes", 1), system("Notes", 2), later]), folder: FOLDER });
    expect(new Set(ids(nodes)).size).toBe(ids(nodes).length);
    expect(nodes[1]).toMatchObject({ label: "later", id: "category:later" });
  });

  it("keep what looks like Markdown as it is", () => {
    const nodes = rowNodes({ usage: usageOf([system("[a](command:evil) `b` $(x) <img>", 1)]), folder: FOLDER });
    expect(textOf(nodes[0]?.children?.[0]?.tooltip)).toContain(
      "\\[a\\]\\(command:evil\\) \\`b\\` \\$\\(x\\) \\<img\\>",
    );
  });

  it("of one name say their directory, and only those", () => {
    const row = (label: string, path: string): UsageRow => ({
      ...system(label, 10),
      source: { uri: `file://${path}`, range: onLine(0) },
    });
    const rows = [
      system("Subagent Configuration (auth)", 5),
      row("Subagent Configuration (auth): NEXUS.md", "/home/ana/company/backend/auth-service/.nexus3/NEXUS.md"),
      row("Subagent Configuration (auth): NEXUS.md", "/home/ana/company/backend/auth-service/NEXUS.md"),
      row("Subagent Configuration (auth): AGENTS.md", "/home/ana/company/AGENTS.md"),
      row("Notes", "/home/ana/notes.md"),
      row("Notes", "/opt/notes/notes.md"),
    ];
    const trees = rowTrees();
    expect(drawn(trees({ usage: usageOf(rows), folder: FOLDER, home: "/home/ana" }))).toBe(`\
System prompt | 55 · < 0.1 %
  Subagent Configuration (auth) | 5 · < 0.1 %
    NEXUS.md | 10 · < 0.1 % · .nexus3
    NEXUS.md | 10 · < 0.1 % · this folder
    AGENTS.md | 10 · < 0.1 %
  Notes | 10 · < 0.1 % · ~
  Notes | 10 · < 0.1 % · /opt/notes
`);
    const alone = trees({ usage: usageOf(rows.slice(0, 5)), folder: FOLDER, home: "/home/ana" });
    expect(drawn(alone)).toContain("  Notes | 10 · < 0.1 %\n"); // the other one is gone
  });

  it("of 5,000 tools are made and compared in little time", () => {
    const servers = Array.from({ length: 50 }, (_, index) => `server${index}`);
    const make = (bump: number) =>
      usageOf(
        Array.from({ length: 5_000 }, (_, index): UsageRow => {
          const source = { uri: `${FOLDER}/t.json`, range: onLine(index) };
          const tokens = 20 + (index === 4_321 ? bump : 0);
          return { category: "tools", label: `server${index % 50}.tool_${index}`, tokens, exact: true, source };
        }),
      );
    const [one, other] = [make(0), make(1)];
    rowNodes({ usage: one, folder: FOLDER, servers });
    const trees = rowTrees();
    const cpu = () => process.cpuUsage().user / 1_000; // milliseconds; the time on the clock is others', too
    const began = cpu();
    const before = trees({ usage: one, folder: FOLDER, servers });
    const made = cpu();
    const what = changes(before, trees({ usage: other, folder: FOLDER, servers }));
    const compared = cpu();
    console.log(
      `5,000 rows: made in ${(made - began).toFixed(0)} ms, again and compared ${(compared - made).toFixed(0)} ms`,
    );
    expect(what).toEqual(["category:tools"]);
    expect(compared - began).toBeLessThan(1_000);
  });
});

function onLine(line: number) {
  return { start: { line, character: 0 }, end: { line, character: 9 } };
}

describe("layers", () => {
  const given = () => ({
    layers: example("nexus/context/layers"),
    folder: FOLDER,
    fragments: example("nexus/context/preview").fragments,
    servers: example("nexus/config/effective").mcpServers,
    home: "/home/ana",
  });

  it("of a real answer: tokens, broken files, imports, servers", () => {
    expect(drawn(layerNodes(given()))).toBe(`\
Defaults | no tokens
  mcp.json | shipped
Global | 43 tokens
  NEXUS.md | 43 tokens · ~/.nexus3
  config.json | ~/.nexus3
Ancestor: company | 74 tokens
  NEXUS.md | 74 tokens · ~/company/.nexus3
  config.json | ~/company/.nexus3
  mcp.json | ~/company/.nexus3
Ancestor: backend | 99 tokens
  AGENTS.md | 99 tokens
  config.json | ~/company/backend/.nexus3
This folder | 187 tokens
  NEXUS.md | 140 tokens · .nexus3
  config.json | stale · 1 problem · .nexus3
  mcp.json | .nexus3
  threats.md | 47 tokens · imported
MCP servers | 2 of 3 on
  tickets | http · Ancestor: company
  files | stdio · This folder
  postgres | http · This folder · off
`);
  });

  it("of the answer that is documented today: every file that is there, ids once each", () => {
    const layers = documented("nexus/context/layers");
    const nodes = layerNodes({ ...given(), layers, fragments: documented("nexus/context/preview").fragments });
    const there = layers.layers.flatMap((layer) => layer.files.filter((file) => file.status !== "missing"));
    expect(ids(nodes).filter((id) => id.startsWith("file:")).length).toBe(there.length);
    expect(new Set(ids(nodes)).size).toBe(ids(nodes).length);
  });

  it("an estimate says so, and a layer has the daemon's figure", () => {
    const [first] = example("nexus/context/layers").layers.filter((layer) => layer.name === "local");
    const layers = {
      revision: 1,
      layers: [{ ...first, name: "local", path: "/w/.nexus3", files: first?.files ?? [], tokens: 220 }],
      skipped: [],
      problems: [],
      counter: { name: "o200k_base × 1.18", exact: false },
    };
    expect(drawn(layerNodes({ ...given(), layers, servers: [] }))).toBe(`\
This folder | ≈ 220 tokens
  NEXUS.md | ≈ 140 tokens
  config.json | stale
  mcp.json
  threats.md | ≈ 47 tokens · imported
`);
  });

  it("a broken file is marked, and leads to its first mistake", () => {
    const file = [...walk(layerNodes(given()))].map(([node]) => node).find((node) => node.context === "file.stale");
    expect(file?.icon).toEqual({ name: "warning", colour: "list.warningForeground" });
    expect(file?.subject?.source?.range.start).toEqual({ line: 5, character: 4 });
    expect(file?.tooltip).toContain("did you mean");
  });

  it("what was left out says why; a layer without files shows what is not there", () => {
    const layers = {
      revision: 1,
      layers: [
        {
          name: "local",
          path: "/w/.nexus3",
          files: [{ kind: "config", uri: "file:///w/.nexus3/config.json", status: "missing" as const }],
          tokens: 0,
        },
      ],
      skipped: [{ path: "/home/eve/.nexus3", reason: "owned by another user" }],
      problems: [],
      counter: { name: "o200k_base", exact: true },
    };
    expect(drawn(layerNodes({ layers, folder: "file:///w" }))).toBe(`\
This folder | nothing there
  config.json | missing
Left out | 1
  .nexus3 | owned by another user
`);
  });
});

describe("sessions", () => {
  const now = new Date("2026-11-20T13:00:00.000Z");
  const one = (index: number): SessionInfo => ({
    session: `s${index}`,
    thread: `t${index}`,
    turns: 1,
    messages: 2,
    tokens: 30,
    created: "2026-11-01T12:00:00.000Z",
    updated: "2026-11-01T12:00:00.000Z",
  });

  it("of a real answer: the current one is marked, forks say of what", () => {
    const nodes = sessionNodes({ ...example("nexus/session/list"), folder: FOLDER, current: "plan", shown: PAGE, now });
    expect(nodes.map((node) => [node.id, node.context, node.icon?.name])).toEqual([
      ["session:plan B", "session.other", "repo-forked"],
      ["session:plan", "session.current", "pass-filled"],
      ["session:main", "session.other", "comment"],
    ]);
    expect(nodes[1]?.spoken).toMatch(/^plan, current, 79 tokens, 5 messages, \d\d:00$/);
    expect(nodes[1]?.figure).toBe("79");
    expect(nodes[0]?.subject).toEqual({ folder: FOLDER, session: "plan B" });
  });

  it("counted for another model are an estimate, and say why", () => {
    const sessions = [{ ...one(1), exact: false }];
    const [node] = sessionNodes({ sessions, folder: FOLDER, current: "", shown: PAGE, now });
    expect([node?.figure, node?.description?.split(" · ")[0]]).toEqual(["≈ 30", "≈ 30 tokens"]);
    expect(textOf(node?.tooltip)).toContain("≈ 30 tokens, as messages were counted when they came");
  });

  it("of many: a page, the current one, and how to see more", () => {
    const sessions = Array.from({ length: 250 }, (_, index) => one(index));
    const nodes = sessionNodes({ sessions, folder: FOLDER, current: "s240", shown: PAGE, now });
    expect(nodes.length).toBe(PAGE + 2);
    expect(nodes[0]).toMatchObject({ label: "s240", context: "session.current" });
    expect(nodes.at(-1)).toMatchObject({ label: "Show 100 more", description: "101 of 250" });
    expect(sessionNodes({ sessions, folder: FOLDER, current: "s240", shown: 300, now }).length).toBe(250);
  });

  const conversation = (program: string, id: string, more: Partial<ConversationInfo> = {}): ConversationInfo => ({
    program,
    programTitle: program === "codex" ? "Codex" : program === "nexus" ? "Nexus" : "Claude Code",
    id,
    title: `title of ${id}`,
    folder: FOLDER,
    lastTurn: "2026-11-20T12:30:00.000Z",
    ...more,
  });
  const lacks = { costLacks: ["conversations of which no cost is known"] };

  it("of all programs: in one order, with program, folder, tokens and cost, and their sum", () => {
    const above = FOLDER.slice(0, FOLDER.lastIndexOf("/"));
    const conversations: ConversationListResult = {
      conversations: [
        conversation("codex", "r1", { folder: above, tokens: 15_000, costUsd: 1.2, ...lacks }),
        conversation("nexus", "t1", { kept: true, session: "s1", thread: "t1", workspaceFolder: FOLDER, tokens: 30 }),
        conversation("claude-code", "c1/a7", { folder: `${FOLDER}/web`, parent: "c1", lastTurn: "" }),
        conversation("nexus", "t9", { folder: "file:///elsewhere", kept: true, session: "s1", thread: "t9" }),
      ],
      total: { conversations: 4, tokens: 15_030, costUsd: 1.2, ...lacks },
      failures: [{ uri: "file:///home/ana/opencode.db", message: "file is not a database" }],
    };
    const nodes = sessionNodes({
      sessions: [one(1), { ...one(2), updated: "2026-11-20T12:59:00.000Z" }],
      conversations,
      folder: FOLDER,
      current: "s1",
      shown: PAGE,
      now,
    });
    expect(nodes.map((node) => [node.id, node.label, node.description?.replace(/ · \d\d:\d\d$/, "")])).toEqual([
      ["session:s2", "s2", "30 tokens · 2 messages"],
      ["conversation:codex:r1", "title of r1", "Codex · .. · 15,000 tokens · at least $1.20 · not kept"],
      ["session:s1", "s1", "current · 30 tokens · 2 messages"],
      ["conversation:nexus:t9", "title of t9", "Nexus · /elsewhere · kept"],
      ["conversation:claude-code:c1/a7", "title of c1/a7", "Claude Code · web · not kept"],
      ["failures", "1 file not read", undefined],
      ["sum", "4 conversations", "15,030 tokens · at least $1.20"],
    ]);
    expect(nodes[1]?.subject).toEqual({
      folder: FOLDER,
      program: "codex",
      conversation: "r1",
      title: "title of r1",
    });
    expect(nodes[1]?.command).toBe("nexus.showTranscript");
    expect(textOf(nodes[5]?.tooltip)).toContain("file is not a database");
    expect(textOf(nodes[6]?.tooltip)).toContain("no cost is known");
  });

  it("of the documented answer: a session that runs has a row of its own, until it is kept", () => {
    const conversations = documented("nexus/conversation/list");
    const { session } = documented("nexus/assistant/session");
    const given = { sessions: [], conversations, folder: FOLDER, current: "main", shown: PAGE, now };
    expect(sessionNodes(given).map((node) => node.description?.split(" · ")[0])).toEqual(["Claude Code"]);
    expect(sessionNodes({ ...given, running: [session] })).toEqual([]);
  });
});

describe("agents", () => {
  const agent = (agentId: string, parent?: string): AgentInfo => ({
    agentId,
    ...(parent === undefined ? {} : { parent }),
    cwd: `/home/ana/company/${agentId}`,
    role: "worker",
    depth: 1,
    session: `agent-${agentId}`,
    usage: usageOf([system("x", 1_840)]),
  });

  it("stand below their parents; who is viewed is marked, and the way back is there", () => {
    const agents = [agent("lead"), agent("tests", "lead"), agent("orphan", "gone")];
    expect(drawn(agentNodes({ agents, folder: FOLDER, viewed: "tests" }))).toBe(`\
You | click to go back to your own view
lead | worker · 1,840 · 1 %
  tests | viewed · worker · 1,840 · 1 %
orphan | worker · 1,840 · 1 %
`);
  });

  it("that are their own ancestors are shown all the same, each once", () => {
    const agents = [agent("a", "b"), agent("b", "a"), agent("c", "b")];
    expect(ids(agentNodes({ agents, folder: FOLDER, viewed: undefined })).sort()).toEqual([
      "agent:a",
      "agent:b",
      "agent:c",
      "you",
    ]);
  });

  it("that get an agent below them are new nodes, which the editor unfolds", () => {
    const nodes = (...agents: AgentInfo[]) => agentNodes({ agents, folder: FOLDER, viewed: undefined });
    expect(ids(nodes(agent("lead")))).toEqual(["you", "agent:lead"]);
    expect(ids(nodes(agent("lead"), agent("tests", "lead")))).toEqual(["you", "agent:lead/", "agent:tests"]);
  });

  it("with something wrong are marked, and say what", () => {
    const wrong = { ...agent("lead"), notice: "Its directory /home/ana/company/lead is gone." };
    const node = agentNodes({ agents: [wrong], folder: FOLDER, viewed: "lead" })[1];
    expect(node?.icon).toEqual({ name: "warning", colour: "list.warningForeground" });
    expect(textOf(node?.tooltip)).toContain("$(warning) Its directory /home/ana/company/lead is gone\\.");
    expect(textOf(node?.spoken)).toContain("Its directory /home/ana/company/lead is gone.");
  });

  it("none: the view says what agents are", () => {
    expect(agentNodes({ agents: [], folder: FOLDER, viewed: undefined })).toEqual([]);
  });
});

describe("changes", () => {
  const leaf = (id: string, description = ""): Node => ({ id, label: id, description });
  const branch = (id: string, children: Node[]): Node => ({ id, label: id, children });

  it("name the one node that is different", () => {
    const before = [branch("a", [leaf("a1"), leaf("a2")]), branch("b", [leaf("b1")])];
    const after = [branch("a", [leaf("a1"), leaf("a2", "new")]), branch("b", [leaf("b1")])];
    expect(changes(before, after)).toEqual(["a2"]);
    expect(changes(before, structuredClone(before))).toEqual([]);
  });

  it("name the parent of what came, went or moved", () => {
    const before = [branch("a", [leaf("a1"), leaf("a2")]), leaf("b")];
    expect(changes(before, [branch("a", [leaf("a2"), leaf("a1")]), leaf("b")])).toEqual(["a"]);
    expect(changes(before, [branch("a", []), leaf("b")])).toEqual(["a"]);
    expect(changes(before, [leaf("b"), branch("a", [leaf("a1"), leaf("a2")])])).toBe("all");
  });

  it("name one parent instead of very many children", () => {
    const many = (text: string) => Array.from({ length: 60 }, (_, index) => leaf(`l${index}`, text));
    expect(changes([branch("a", many("")), leaf("b")], [branch("a", many("x")), leaf("b")])).toEqual(["a"]);
    expect(changes(many(""), many("x"))).toBe("all");
  });

  it("are enough: showing again what they name gives the new tree (random trees)", () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * below);
    };
    const grow = (prefix: string, depth: number): Node[] =>
      Array.from({ length: random(4) }, (_, index) => {
        const id = `${prefix}${random(8) ? index : index + 10}`;
        const children = depth ? grow(`${id}.`, depth - 1) : [];
        return { id, label: id, description: String(random(3)), ...(children.length ? { children } : {}) };
      });
    for (let round = 0; round < 500; round++) {
      const [before, after] = [grow("", 3), grow("", 3)];
      expect(shownAgain(before, after, changes(before, after))).toEqual(after);
    }
  });
});

/** What a view shows that showed `before` and is told of the changes. */
function shownAgain(
  before: readonly Node[],
  after: readonly Node[],
  what: ReturnType<typeof changes>,
): readonly Node[] {
  if (what === "all") return after;
  const now = new Map([...walk(after)].map(([node]) => [node.id, node]));
  const again = (nodes: readonly Node[]): Node[] =>
    nodes.map((node) => {
      const fresh = what.includes(node.id) ? now.get(node.id) : undefined;
      if (fresh) return fresh;
      return node.children ? { ...node, children: again(node.children) } : node;
    });
  return again(before);
}
