// @vitest-environment happy-dom
/** The view of another assistant: its figures, its files, and the table of who reads what. */
import { beforeEach, describe, expect, test } from "vitest";
import { layerNodes } from "../../src/panel/layers";
import type { FromPage } from "../../src/panel/messages";
import { readersTable } from "../../src/panel/readers";
import { page } from "../../src/panel/webview/paint";
import { type ViewedAssistant, windowModel } from "../../src/panel/window";
import type { AssistantInfo, LayersResult } from "../../src/protocol";
import { documented, usageOf } from "./panel-examples";

const FOLDER = "file:///home/ana/shop";
const folder = { uri: FOLDER, name: "shop" };
const info = documented("nexus/assistant/list").assistants.find(({ name }) => name === "claude-code") as
  | AssistantInfo
  | undefined;
const readers = documented("nexus/assistant/readers");
const usage = usageOf([{ category: "system", label: "CLAUDE.md", tokens: 54, exact: false }], { reserved: 0 });
const LAYERS: LayersResult = {
  revision: 1,
  counter: { name: "estimate", exact: false },
  layers: [
    {
      name: "user",
      path: "/home/ana/.claude",
      tokens: 37,
      files: [{ kind: "instructions", uri: "file:///home/ana/.claude/CLAUDE.md", status: "loaded", tokens: 37 }],
    },
    {
      name: "rule",
      path: "/home/ana/shop",
      tokens: 0,
      files: [
        {
          kind: "instructions",
          uri: `${FOLDER}/.claude/rules/src.md`,
          status: "conditional",
          tokens: 9,
          reason: "Sent after a file that matches src/** is read.",
        },
      ],
    },
  ],
  skipped: [{ path: "/home/ana/shop/AGENTS.md", reason: "Claude Code reads CLAUDE.md, not AGENTS.md." }],
  problems: [
    {
      uri: `${FOLDER}/CLAUDE.md`,
      range: { start: { line: 6, character: 0 }, end: { line: 6, character: 9 } },
      severity: 2,
      code: "assistant.import",
      message: "There is no docs/old.md.",
    },
  ],
};

function model(assistant: ViewedAssistant = { name: "claude-code", info, readers }) {
  return windowModel({ folder, session: "main", usage, layers: LAYERS, assistant });
}

describe("the window of another assistant", () => {
  test("says whose it is, what is counted, and by which rules", () => {
    const shown = model();
    expect(shown.assistant).toBe("Claude Code");
    expect(shown.spoken).toMatch(/^What Claude Code reads\. 54 tokens of /);
    expect(shown.facts.map(({ label, text }) => [label, text])).toEqual([
      ["Counted", "What Claude Code sends of files with every request"],
      ["Rules", `Claude Code ${info?.version}, by its own requests`],
    ]);
    const documentation = info && { ...info, title: "Cursor", version: "2026-11", verified: "documentation" as const };
    expect(model({ name: "cursor", info: documentation }).facts.at(-1)?.text).toBe(
      "Cursor by documentation of 2026-11",
    );
  });

  test("has its problems as remarks, and nothing of Nexus's own", () => {
    expect(model().remarks).toEqual([{ tone: "warning", text: "CLAUDE.md:7: There is no docs/old.md." }]);
    expect(model().facts.map(({ label }) => label)).not.toContain("Cache");
    const [problem] = LAYERS.problems;
    const layers = { ...LAYERS, problems: problem ? [problem, problem, problem, problem] : [] };
    const assistant = { name: "claude-code" };
    expect(windowModel({ folder, session: "main", usage, layers, assistant }).remarks.at(-1)).toEqual({
      tone: "info",
      text: "2 more problems: nexus check --for claude-code",
    });
  });

  test("has no threshold of Nexus's own compaction", () => {
    const config = documented("nexus/config/effective");
    const settings = { ...config.config, compaction: { enabled: true, threshold: 0.8 } };
    const given = { folder, session: "main", usage, config: { ...config, config: settings } };
    expect(windowModel(given).marks.length).toBe(1);
    expect(windowModel({ ...given, assistant: { name: "claude-code" } }).marks).toEqual([]);
  });

  test("is there before its name and its readers are known", () => {
    const shown = model({ name: "codex" });
    expect([shown.assistant, shown.readers]).toEqual(["codex", undefined]);
  });
});

test("its layers are the scopes; a file that is sent later says when", () => {
  const nodes = layerNodes({ layers: LAYERS, folder: FOLDER });
  expect(nodes.map(({ label }) => label)).toEqual(["User", "Rules", "Left out"]);
  const rule = nodes[1]?.children?.[0];
  expect(rule?.description).toBe("≈ 9 tokens · later");
  expect(rule?.tooltip).toContain("Sent after a file that matches src");
});

test("its MCP servers say whether they start", () => {
  const uri = `${FOLDER}/.mcp.json`;
  const servers = [
    {
      name: "gate",
      uri,
      scope: "project" as const,
      start: "asks" as const,
      reason: "Claude Code asks the user first.",
    },
    { name: "old", uri, scope: "user" as const, start: "off" as const },
  ];
  const node = layerNodes({ layers: { ...LAYERS, servers }, folder: FOLDER }).find(({ id }) => id === "servers");
  expect(node?.children?.map(({ label, description }) => [label, description])).toEqual([
    ["gate", "waits for approval · Project"],
    ["old", "off · User"],
  ]);
  expect(node?.children?.[0]?.tooltip).toContain("Claude Code asks the user first");
});

test("layers of one name have ids of their own", () => {
  const parent = (path: string) => ({ name: "parent", path, tokens: 0, files: [] });
  const layers = { ...LAYERS, layers: [parent("/a"), parent("/a/b")] };
  const ids = layerNodes({ layers, folder: FOLDER }).map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

describe("who reads what", () => {
  const table = () => readersTable(readers, { folder: FOLDER, current: "codex" });

  test("has a column for each assistant and a row for each file", () => {
    const { columns, rows } = table();
    expect(columns.map(({ name }) => name)).toEqual(readers.assistants.map(({ name }) => name));
    expect(columns.filter(({ current }) => current).map(({ name }) => name)).toEqual(["codex"]);
    expect(rows.map(({ uri }) => uri)).toEqual(readers.files.map(({ uri }) => uri));
    for (const { cells } of rows) expect(cells.map(({ column }) => column)).toEqual(columns.map(({ name }) => name));
  });

  test("a cell says what becomes of the file, what that costs, and why", () => {
    const files = [
      {
        uri: `${FOLDER}/AGENTS.md`,
        readers: [
          { assistant: "codex", use: "cut" as const, tokens: 8_085, exact: true, reason: "Cut at 32,768 bytes." },
          { assistant: "claude-code", use: "unread" as const, tokens: 0, exact: false },
        ],
      },
    ];
    const [row] = readersTable({ ...readers, files }, { folder: FOLDER, current: "codex" }).rows;
    expect(row?.cells.map(({ sign, tooltip }) => [sign, tooltip])).toEqual([
      ["◐", "Codex: in part, 8,085 tokens. Cut at 32,768 bytes."],
      ["–", "Claude Code: not read"],
    ]);
  });

  let root: HTMLElement;
  let sent: FromPage[];
  beforeEach(() => {
    document.body.innerHTML = "<main></main><div></div>";
    root = document.body.children[0] as HTMLElement;
    sent = [];
  });
  const open = () =>
    page(root, document.body.children[1] as HTMLElement, {
      send: (message) => sent.push(message),
      onScale: () => undefined,
    });

  test("is on the page while an assistant is looked at, and a row opens its file", () => {
    const shown = open();
    shown.show(model());
    const part = root.querySelector<HTMLElement>(".readers-part");
    expect(part?.hidden).toBe(false);
    expect([...root.querySelectorAll(".readers thead th")].map((cell) => cell.textContent)).toEqual([
      "File",
      ...readers.assistants.map(({ title }) => title),
    ]);
    expect(root.querySelectorAll(".readers tbody tr").length).toBe(readers.files.length);
    root.querySelector<HTMLButtonElement>(".reader-file")?.click();
    expect(sent).toEqual([{ type: "open", uri: readers.files[0]?.uri }]);
    shown.show(windowModel({ folder, session: "main", usage }));
    expect(part?.hidden).toBe(true);
  });

  test("the head names the assistant; its model and conversation cannot be picked", () => {
    const shown = open();
    shown.show(model());
    expect(root.querySelector(".who")?.textContent).toBe("What is read by Claude CodeBack to your view");
    expect(root.querySelector<HTMLButtonElement>(".model")?.disabled).toBe(true);
    expect(
      [...root.querySelectorAll<HTMLElement>(".crumb")].filter((one) => !one.hidden).map((one) => one.textContent),
    ).toEqual([usage.model, "Claude Code", "shop"]);
    shown.show(windowModel({ folder, session: "main", usage }));
    expect(root.querySelector<HTMLElement>(".who")?.hidden).toBe(true);
    expect(
      [...root.querySelectorAll<HTMLElement>(".crumb")].filter((one) => !one.hidden).map((one) => one.textContent),
    ).toEqual([usage.model, "Nexus", "shop", "main"]);
  });
});
