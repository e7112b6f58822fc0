import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import type { UsageRow } from "../../src/protocol";
import { byPart, firstRow, PARTS, partOf } from "../../src/usage/parts";
import { documented, usageOf } from "./panel-examples";

const row = (category: UsageRow["category"], label: string, uri?: string, tokens = 1): UsageRow => ({
  category,
  label,
  tokens,
  exact: true,
  ...(uri === undefined
    ? {}
    : { source: { uri, range: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } } } }),
});
const TEXTS = "file:///opt/nexus/nexus_context/folder/prompt/texts";

test.each([
  [row("system", "Project Configuration", "file:///w/AGENTS.md"), "instructions"],
  [row("system", "Glossary", "file:///w/.nexus3/config.json"), "instructions"],
  [row("system", "rotate-key", "file:///w/.nexus3/skills/rotate-key/SKILL.md"), "skills"],
  [row("system", "Skills", `${TEXTS}/skills.md`), "skills"],
  [row("system", "MCP Servers", `${TEXTS}/mcp_servers.md`), "tools"],
  [row("system", "Environment", `${TEXTS}/environment.md`), "nexus"],
  [row("system", "Default Configuration", "file:///opt/nexus/nexus_context/folder/defaults/NEXUS.md"), "nexus"],
  [row("system", "Date"), "nexus"],
  [row("tools", "git.log"), "tools"],
  [row("history", "2 messages"), "history"],
  [row("memory", "earlier"), "memory"],
  [row("event", "git state"), "memory"],
  [row("event", "current message"), "message"],
] as const)("%o is a row of the part %s", (one, part) => {
  expect(partOf(one)).toBe(part);
});

describe("the parts of a usage", () => {
  const rows = [
    row("system", "Project", "file:///w/NEXUS.md", 100),
    row("system", "Environment", undefined, 20),
    { ...row("tools", "git.log", undefined, 30), exact: false },
    row("history", "1 message", undefined, 5),
  ];

  test("are those that the server names, with tool definitions, and none without tokens", () => {
    const parts = [
      { part: "instructions", tokens: 81, exact: true },
      { part: "skills", tokens: 0, exact: true },
      { part: "tools", tokens: 7, exact: true },
      { part: "nexus", tokens: 32, exact: true },
    ] as const;
    expect(byPart(usageOf(rows, { parts: [...parts] }))).toEqual([
      { part: "instructions", tokens: 81, exact: true },
      { part: "tools", tokens: 37, exact: false },
      { part: "nexus", tokens: 32, exact: true },
      { part: "history", tokens: 5, exact: true },
    ]);
  });

  test("are those of whole rows with an older server", () => {
    expect(byPart(usageOf(rows)).map(({ part, tokens }) => `${part} ${tokens}`)).toEqual([
      "instructions 100",
      "tools 30",
      "nexus 20",
      "history 5",
    ]);
  });

  test("of the answer that is documented today sum to its total", () => {
    const usage = documented("nexus/context/usage");
    const parts = byPart(usage);
    expect(parts.map(({ part }) => part)).toEqual(["instructions", "skills", "tools", "nexus", "history"]);
    expect(parts.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(usage.total);
    for (const { part, tokens } of usage.parts ?? []) {
      expect([part, parts.find((one) => one.part === part)?.tokens]).toEqual([part, tokens]);
    }
    expect(parts.map(({ part }) => firstRow(part, usage.rows)?.label)).toEqual([
      "Agent Definition",
      "Skills",
      "MCP Servers",
      "System Configuration",
      "4 messages",
    ]);
  });
});

describe("the colours of the parts", () => {
  const manifest = JSON.parse(readFileSync(resolve(__dirname, "../../package.json"), "utf8")) as {
    contributes: { colors: { id: string; defaults: Record<string, string> }[] };
  };
  const { colors } = manifest.contributes;
  /** Side bars and editors of VS Code's own themes. */
  const BACKGROUNDS: Readonly<Record<string, readonly string[]>> = {
    dark: ["#181818", "#1F1F1F", "#252526", "#191A1B"],
    light: ["#FFFFFF", "#F8F8F8", "#F3F3F3"],
    highContrast: ["#000000"],
    highContrastLight: ["#FFFFFF"],
  };

  test("are declared, each once", () => {
    const used = Object.values(PARTS).map(({ colour }) => colour);
    expect(colors.map(({ id }) => id).sort()).toEqual([...new Set(used)].sort());
  });

  test.each(Object.entries(BACKGROUNDS))("can be seen and told apart in a theme that is %s", (kind, backgrounds) => {
    const wanted = kind.startsWith("high") ? 4.5 : 3; // WCAG 2.2, 1.4.11
    const shown = colors.map(({ id, defaults }) => ({ id, colour: defaults[kind] ?? "" }));
    for (const { id, colour } of shown) {
      for (const background of backgrounds) {
        expect(contrast(colour, background), `${id} on ${background}`).toBeGreaterThanOrEqual(wanted);
      }
      for (const other of shown) {
        if (other.id !== id) expect(distance(colour, other.colour), `${id} and ${other.id}`).toBeGreaterThan(20);
      }
    }
  });
});

/** Red, green and blue as light, from 0 to 1. */
function light(colour: string): [number, number, number] {
  const part = (at: number) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [part(1), part(3), part(5)];
}

/** From 1 to 21, as WCAG defines it. */
function contrast(one: string, other: string): number {
  const luminance = (colour: string) => {
    const [red, green, blue] = light(colour);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark = 0, bright = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

/** In CIELAB; about 2 can just be told apart. */
function distance(one: string, other: string): number {
  const lab = (colour: string) => {
    const [red, green, blue] = light(colour);
    const f = (value: number) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116);
    const x = f((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047);
    const y = f(0.2126 * red + 0.7152 * green + 0.0722 * blue);
    const z = f((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)] as const;
  };
  const [a, b] = [lab(one), lab(other)];
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}
