import { describe, expect, test } from "vitest";
import * as vscode from "vscode";
import { aboutOf, uriOf } from "../../src/documents";
import { effectiveText } from "../../src/documents/effective";
import { fragmentAt, placeIn, sections, sourceOf } from "../../src/documents/mappedText";
import { requestJson, requestText } from "../../src/documents/request";
import type { AssembledContext, EffectiveResult, Fragment, Provenance, Range } from "../../src/protocol";
import { usageOf } from "./nexus";

const range = (a: number, b: number, c: number, d: number): Range => ({
  start: { line: a, character: b },
  end: { line: c, character: d },
});

const piece = (title: string, at: Range, source: Range | undefined, verbatim: boolean): Fragment => ({
  section: "layers",
  layer: title === "Own" ? null : "local",
  title,
  range: at,
  source: source ? { uri: "file:///w/NEXUS.md", range: source } : null,
  tokens: 5,
  verbatim,
});

const FRAGMENTS = [
  piece("Own", range(0, 0, 2, 0), undefined, false),
  piece("Project", range(2, 0, 3, 0), range(0, 0, 0, 0), false),
  piece("Project", range(3, 0, 3, 6), range(4, 2, 4, 8), true),
  piece("Project", range(3, 6, 6, 3), range(9, 4, 12, 3), true),
];

describe("from a place of the prompt to its source", () => {
  test.each([
    ["Nexus's own text", 0, 4, undefined],
    ["text that is made from a file", 2, 7, [0, 0]],
    ["the begin of a verbatim piece", 3, 0, [4, 2]],
    ["the middle of its first line", 3, 4, [4, 6]],
    ["a border belongs to what begins there", 3, 6, [9, 4]],
    ["a first line that begins in the middle", 3, 8, [9, 6]],
    ["a later line", 5, 2, [11, 2]],
    ["the end of the text", 6, 3, [12, 3]],
  ] as const)("%s", (_what, line, character, expected) => {
    const at = sourceOf(FRAGMENTS, { line, character })?.range.start;
    expect(at && [at.line, at.character]).toEqual(expected);
  });

  test("no text, no source", () => {
    expect(sourceOf([], { line: 0, character: 0 })).toBeUndefined();
    expect(fragmentAt(FRAGMENTS, { line: 9, character: 0 })?.title).toBe("Project");
  });

  test("every piece is found at its begin, however many there are", () => {
    const many = Array.from({ length: 5_000 }, (_, line) =>
      piece(`t${line}`, range(line, 0, line + 1, 0), undefined, false),
    );
    expect(many.every((one) => fragmentAt(many, one.range.start) === one)).toBe(true);
  });
});

test.each([
  ["the places that lie in it", range(4, 0, 9, 0), [3, 0, 3, 6]],
  ["the first of two", range(4, 2, 4, 8), [3, 0, 3, 6]],
  ["the whole file, where none lies in it", range(20, 0, 21, 0), [2, 0, 6, 3]],
] as const)("from a place of a file to the prompt: %s", (_what, source, expected) => {
  const place = placeIn(FRAGMENTS, { uri: "file:///w/NEXUS.md", range: source });
  expect(place && [place.start.line, place.start.character, place.end.line, place.end.character]).toEqual(expected);
  expect(placeIn(FRAGMENTS, { uri: "file:///w/other.md", range: source })).toBeUndefined();
});

test("from a file to the prompt: with its heading there, without the line below it", () => {
  const fragments = [
    piece("Soul", range(0, 0, 2, 0), range(0, 0, 0, 0), false),
    piece("Soul", range(2, 0, 2, 9), range(0, 0, 0, 9), true),
    piece("Soul", range(2, 9, 6, 0), range(0, 9, 0, 9), false),
  ];
  expect(placeIn(fragments, { uri: "file:///w/NEXUS.md", range: range(0, 0, 0, 9) })).toEqual(range(0, 0, 2, 9));
});

test("neighbours of one title are one section, with the sum of their tokens", () => {
  expect(sections(FRAGMENTS)).toEqual([
    { title: "Own", layer: null, range: range(0, 0, 2, 0), tokens: 5 },
    { title: "Project", layer: "local", range: range(2, 0, 6, 3), tokens: 15 },
  ]);
});

test("what a document is about is in its URI, whatever the names", () => {
  const about = { kind: "request", folder: "file:///w/a%20b?", session: "50% & #1", agent: "x/y" } as const;
  const uri = uriOf(about, "a b");
  expect(uri.path).toBe("/a b/next request (x-y).md");
  expect(aboutOf(vscode.Uri.parse(uri.toString()))).toEqual(about);
  expect(aboutOf(uri.with({ query: "{" }))).toBeUndefined();
  expect(aboutOf(uri.with({ query: '{"kind":"other","folder":"x"}' }))).toBeUndefined();
});

const set = (layer: string, wins: boolean, ignored = false): Provenance => ({
  layer,
  uri: `file:///${layer}/config.json`,
  range: range(2, 4, 2, 9),
  value: 1,
  wins,
  ...(ignored ? { ignored } : {}),
});

test("the settings in force say who set them, line by line", () => {
  const effective: EffectiveResult = {
    revision: 1,
    config: { provider: { name: "openai", model: "o3", "a/b~c": [1, { d: null }], none: {} } },
    provenance: {
      "/provider/name": [set("global", false), set("local", true)],
      "/provider/a~1b~0c/1/d": [set("built-in", true)],
      "/provider/none": [set("local", false, true)],
      "/provider/model": [set("local", false), { ...set("agent", true), value: "o3" }],
    },
    mcpServers: [
      { name: "t", type: "stdio", origin: "local", uri: "file:///mcp.json", range: range(0, 0, 1, 0), enabled: false },
    ],
  };
  const { text, setBy } = effectiveText(effective, (uri) => uri.replace("file:///", ""));
  expect(text.split("\n").slice(1)).toEqual([
    "{",
    '  "provider": {',
    '    "name": "openai",  // local: local/config.json:3; not global',
    '    "model": "o3",  // agent; not local',
    '    "a/b~c": [',
    "      1,",
    "      {",
    '        "d": null  // default',
    "      }",
    "    ],",
    '    "none": {}  // not local (may not set it)',
    "  }",
    "}",
    "",
    "// MCP servers, in the order of the layers",
    "//   t (stdio) from local, off: mcp.json:1",
    "",
  ]);
  expect([...setBy.keys()]).toEqual([3, 4, 8, 11]);
});

const CONTEXT = {
  session: "main",
  systemPrompt: "# System\n\n````\ncode\n````\n",
  history: [
    { role: "assistant", content: null, toolCalls: [{ id: "c1", name: "search", arguments: { q: "x" } }] },
    { role: "tool", content: "found", toolCallId: "c1" },
  ],
  currentMessage: null,
  tools: [{ name: "search" }],
  parameters: { temperature: { value: 0.2, origin: "local" } },
  model: "gpt-4.1",
  provider: "openai",
  usage: usageOf([{ tokens: 1_000 }]),
  metadata: { toolsLeftOut: { post: "denied" } },
} as unknown as AssembledContext;

test("the next request can be read: fences hold whatever stands in them", () => {
  const text = requestText(CONTEXT);
  expect(text).toContain("gpt-4.1 (openai), conversation main: 1,000 of 200,000 tokens, 0.5 %");
  expect(text).toContain("`````markdown\n# System\n\n````\ncode\n````\n`````");
  expect(text).toContain("- `temperature`: 0.2 (local)");
  expect(text).toContain("### 2. tool of c1\n\n```text\nfound\n```");
  expect(text).toContain("- tool `post`: denied");
});

test("as JSON it is what a program would send on", () => {
  expect(JSON.parse(requestJson(CONTEXT))).toMatchObject({
    model: "gpt-4.1",
    parameters: { temperature: 0.2 },
    history: CONTEXT.history,
    systemPrompt: CONTEXT.systemPrompt,
  });
});
