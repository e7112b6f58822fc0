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
const ALL = new Set(readers.assistants.map(({ name }) => name as string));
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
      message: "There is no /home/ana/shop/docs/old.md.",
    },
  ],
};

const CLAUDE: ViewedAssistant = { name: "claude-code", title: "Claude Code", info, readers, inUse: ALL };

function model(assistant = CLAUDE) {
  const reason = "it runs here";
  return windowModel({ folder, session: "main", usage, layers: LAYERS, assistant, reason });
}

describe("the window of another assistant", () => {
  test("says whose it is, what is counted, and by which rules", () => {
    const shown = model();
    expect(shown.assistant).toBe("Claude Code");
    expect(shown.spoken).toMatch(/^Claude Code: it runs here\. 54 tokens of /);
    expect(shown.facts.map(({ label, text }) => [label, text])).toEqual([
      ["Counted", "What Claude Code sends of files with every request"],
      ["Rules", `Claude Code ${info?.version}, by its own requests`],
    ]);
    const documentation = info && { ...info, title: "Cursor", version: "2026-11", verified: "documentation" as const };
    expect(model({ ...CLAUDE, title: "Cursor", info: documentation }).facts.at(-1)?.text).toBe(
      "Cursor by documentation of 2026-11",
    );
  });

  test("has its problems as remarks, and nothing of Nexus's own", () => {
    expect(model().remarks).toEqual([
      {
        tone: "warning",
        text: "There is no docs/old.md.",
        source: { label: "CLAUDE.md:7", uri: `${FOLDER}/CLAUDE.md`, line: 6 },
      },
    ]);
    expect(model().facts.map(({ label }) => label)).not.toContain("Cache");
    const [problem] = LAYERS.problems;
    const layers = { ...LAYERS, problems: problem ? [problem, problem, problem, problem] : [] };
    expect(windowModel({ folder, session: "main", usage, layers, assistant: CLAUDE }).remarks.at(-1)).toEqual({
      tone: "info",
      text: "2 more problems.",
      action: { id: "check", label: "Show" },
    });
  });

  test("has no threshold of Nexus's own compaction", () => {
    const config = documented("nexus/config/effective");
    const settings = { ...config.config, compaction: { enabled: true, threshold: 0.8 } };
    const given = { folder, session: "main", usage, config: { ...config, config: settings } };
    expect(windowModel(given).marks.length).toBe(1);
    expect(windowModel({ ...given, assistant: CLAUDE }).marks).toEqual([]);
  });

  test("is there before its name and its readers are known", () => {
    const shown = model({ name: "codex", title: "Codex", inUse: new Set() });
    expect([shown.assistant, shown.readers]).toEqual(["Codex", undefined]);
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
  const table = () => readersTable(readers, { folder: FOLDER, current: "codex", inUse: ALL });

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
    const [row] = readersTable({ ...readers, files }, { folder: FOLDER, current: "codex", inUse: ALL }).rows;
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
    expect(sent).toEqual([{ type: "open", uri: readers.files[0]?.uri, line: 0 }]);
    shown.show(windowModel({ folder, session: "main", usage }));
    expect(part?.hidden).toBe(true);
  });

  test("only assistants in use have a column, and the one that is looked at", () => {
    const { columns, rows } = readersTable(readers, { folder: FOLDER, current: "codex", inUse: new Set(["cursor"]) });
    expect(columns.map(({ name }) => name)).toEqual(["codex", "cursor"]);
    for (const { cells } of rows) expect(cells.length).toBe(2);
  });

  test("a problem leads to its line, on the page", () => {
    const shown = open();
    shown.show(model());
    const remark = root.querySelector(".remark");
    expect(remark?.querySelector(".remark-text")?.textContent).toBe("CLAUDE.md:7: There is no docs/old.md.");
    remark?.querySelector("button")?.click();
    expect(sent).toEqual([{ type: "open", uri: `${FOLDER}/CLAUDE.md`, line: 6 }]);
  });

  test("the head names the assistant; its model and conversation cannot be picked", () => {
    const shown = open();
    shown.show(model());
    const view = root.querySelector<HTMLElement>(".who.view");
    expect(view?.textContent).toBe("Claude Code: it runs here");
    view?.querySelector("button")?.click();
    expect(sent).toEqual([{ type: "act", id: "chooseView" }]);
    const order = [...root.querySelectorAll(".head, .track, .legend, .remarks, .readers-part, .facts")];
    const classes = order.map((element) => element.className.split(" ")[0]);
    expect(classes).toEqual(["head", "remarks", "readers-part", "track", "legend", "facts"]);
    expect(root.querySelector<HTMLButtonElement>(".model")?.disabled).toBe(true);
    expect(
      [...root.querySelectorAll<HTMLElement>(".crumb")].filter((one) => !one.hidden).map((one) => one.textContent),
    ).toEqual([usage.model, "shop"]);
    shown.show(windowModel({ folder, session: "main", usage }));
    expect([...root.querySelectorAll<HTMLElement>(".who")].map(({ hidden }) => hidden)).toEqual([true, true]);
    expect(
      [...root.querySelectorAll<HTMLElement>(".crumb")].filter((one) => !one.hidden).map((one) => one.textContent),
    ).toEqual([usage.model, "Nexus", "shop", "main"]);
  });
});
