/**
 * Pictures that are looked at, and not kept: a monorepo with everybody's instruction files, and a whole chat turn, in
 * every theme and in a narrow side bar.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, beforeEach, test } from "vitest";
import type { Message } from "../../src/protocol/index.ts";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, window, world } from "./harness/each.ts";
import { monorepo } from "./harness/monorepo.ts";
import type { Workbench } from "./harness/workbench.ts";
import { EXTENSION, leaveModelToEditor } from "./harness/world.ts";

const LOOKS = path.join(process.env.NEXUS_E2E_CACHE ?? path.join(EXTENSION, ".e2e"), "looks");
const SIZE = { width: 1280, height: 800 };
const LONG_MS = 400_000; // some twenty pictures
const SETTLE_MS = 1_500;
const THEMES = ["dark", "light", "hc-dark", "hc-light"] as const;

const QUESTIONS = [
  "Does main.py open a connection?",
  "Which handlers open one?",
  "May a test open one?",
  "Who closes it?",
  "And in a worker?",
];
const ANSWERS = {
  "Which rules hold":
    "A handler opens **no connection of its own**: it takes the one that it is given (`packages/api/AGENTS.md`).\n",
  "May a handler": "No: a handler takes the connection that it is given.\n",
};

beforeAll(() => {
  const says = { name: "Model of your chat", answers: ANSWERS };
  writeFileSync(path.join(world().root, "model.json"), JSON.stringify(says));
});
beforeEach(photographFailure);

test(
  "a whole chat turn",
  async () => {
    const root = monorepo(world(), "chat-turn");
    const folder = path.join(root, "packages/api");
    const settings = {
      provider: { name: "editor" },
      compaction: { enabled: true, threshold: 0.02, target: 0.015, recent_preserve_ratio: 0.005 },
    };
    mkdirSync(path.join(folder, ".nexus3"));
    writeFileSync(path.join(folder, ".nexus3/config.json"), JSON.stringify(settings));
    const bench = await open(folder, path.join(folder, "AGENTS.md"));
    await bench.openPanel();
    await bench.openChat("Model of you");
    await bench.newChat();
    await bench.ask("Which rules hold for a handler of this package?");
    await bench.response("begins here").waitFor();
    await bench.ask("What did we decide about handlers? [[tool query_l2_memory {}]]");
    await bench.response("You said").waitFor();
    const daemon = await Daemon.start(world(), folder);
    for (let turn = 1; turn <= 12; turn++) {
      await daemon.request("nexus/session/append", {
        workspaceFolder: uriOf(folder),
        session: "main",
        messages: [
          { role: "user", content: `Step ${turn}: what does the module do next?` },
          { role: "assistant", content: `In step ${turn} it checks a token. `.repeat(60) },
        ],
      });
    }
    await daemon.stop();
    await bench.ask("May a handler open a connection of its own?");
    await bench.response("Compacted first").waitFor();
    await bench.widenChat(420);
    for (const scheme of ["dark", "light"] as const) {
      await bench.page.emulateMedia({ colorScheme: scheme });
      await bench.widenSideBar(180);
      await settle(bench);
      await look(bench, `chat-live-${scheme}`);
      await bench.page.mouse.move(1100, 300);
      await bench.page.mouse.wheel(0, -420);
      await bench.page.waitForTimeout(SETTLE_MS);
      await look(bench, `chat-live-${scheme}-above`);
      await bench.page.mouse.wheel(0, 5000);
      await bench.widenSideBar(340);
    }
    for (const theme of THEMES.slice(2)) {
      await bench.dress(theme);
      for (const [width, views] of [
        [180, ["Context Window", "What Costs What"]],
        [340, ["Layers", "Conversations"]],
      ] as const) {
        await bench.openPanel();
        await bench.widenSideBar(width);
        await bench.unfold(...views);
        await settle(bench);
        await look(bench, `chat-${theme}-${width}`);
      }
    }
    bench.undress();
    await bench.close();
  },
  LONG_MS,
);

test(
  "a conversation as a text",
  async () => {
    const folder = path.join(monorepo(world(), "text"), "packages/api");
    const daemon = await Daemon.start(world(), folder);
    const at = { workspaceFolder: uriOf(folder) };
    for (const [index, question] of QUESTIONS.entries()) {
      const call = { id: `c${index}`, name: "read_file", arguments: { path: "packages/api/main.py" } };
      const messages: Message[] = [
        { role: "user", content: question },
        { role: "assistant", content: "I read the handler first.", toolCalls: [call] },
        { role: "tool", toolCallId: call.id, content: "print('api')\n".repeat(40 * index + 3) },
        { role: "assistant", content: `1. It takes the connection that it is given.\n2. \`main.py\` opens **none**.` },
      ];
      await daemon.request("nexus/session/append", { ...at, session: "main", messages });
    }
    await daemon.request("nexus/session/compact", { ...at, session: "main" });
    await daemon.request("nexus/session/fork", { ...at, session: "main", to: "another-way" });
    const messages: Message[] = [
      { role: "user", content: "What if it pooled them?" },
      { role: "assistant", content: "Then the pool would be given." },
    ];
    await daemon.request("nexus/session/append", { ...at, session: "another-way", messages });
    await daemon.stop();
    const bench = await open(folder, path.join(folder, "AGENTS.md"));
    for (const theme of THEMES) {
      await bench.dress(theme);
      await bench.openPanel();
      await bench.widenSideBar(300);
      await bench.unfold("Conversations");
      await bench.row("Conversations", "another-way").click();
      await bench.page.locator(".part.editor .tab.active", { hasText: "another-way (conversation)" }).waitFor();
      await settle(bench);
      await look(bench, `text-${theme}`);
    }
    bench.undress();
    await bench.close();
  },
  LONG_MS,
);

test(
  "the trees of a monorepo",
  async () => {
    const root = monorepo(world(), "trees");
    for (const name of ["", "packages/api", "packages/web", "packages/broken"]) {
      const folder = path.join(root, name);
      const bench = await open(folder, path.join(folder, "AGENTS.md"));
      await bench.openPanel();
      for (const [width, views] of [
        [180, ["Layers"]],
        [340, ["Layers", "What Costs What"]],
      ] as const) {
        await bench.widenSideBar(width);
        await bench.unfold(...views);
        await settle(bench);
        await look(bench, `trees-${path.basename(folder)}-${width}`);
        console.log((await bench.rows("Layers")).join("\n"));
      }
      for (const file of ["CLAUDE.md", ".github/copilot-instructions.md"]) {
        await bench.openFile(file).catch(() => bench.page.keyboard.press("Escape"));
        await bench.page.waitForTimeout(SETTLE_MS);
        console.log(file, await bench.lens(/./).allInnerTexts());
      }
      await look(bench, `lenses-${path.basename(folder)}`);
      await bench.close();
    }
  },
  LONG_MS,
);

test(
  "trees and walkthrough in high contrast",
  async () => {
    const root = monorepo(world(), "contrast");
    const folder = path.join(root, "packages/api");
    const bench = await open(folder, path.join(folder, "AGENTS.md"));
    for (const theme of ["hc-dark", "hc-light"] as const) {
      await bench.dress(theme);
      await bench.openPanel();
      await bench.unfold("Layers", "What Costs What");
      await bench.widenSideBar(340);
      await settle(bench);
      await look(bench, `trees-${theme}`);
      await bench.page.keyboard.press("Control+B");
      await bench.command("Nexus: Open Walkthrough");
      await bench.page.locator(".gettingStartedContainer img").first().waitFor();
      await bench.page.waitForTimeout(SETTLE_MS);
      await look(bench, `walkthrough-${theme}`);
    }
    bench.undress();
    await bench.close();
  },
  LONG_MS,
);

test(
  "the MCP servers of a folder, and the question before a call",
  async () => {
    const folder = path.join(monorepo(world(), "servers"), "packages/api");
    mkdirSync(path.join(folder, ".nexus3"), { recursive: true });
    const failing = "console.error('no token is set'); process.exit(3)";
    const mcpServers = {
      files: { command: "node", args: [world().mcpServer, folder] },
      broken: { command: "node", args: ["-e", failing] },
      waiting: { command: "node", args: [world().mcpServer, folder, folder] },
    };
    writeFileSync(path.join(folder, ".nexus3/mcp.json"), JSON.stringify({ mcpServers }, null, 2));
    leaveModelToEditor(folder, "editor");
    const bench = await open(folder, path.join(folder, ".nexus3/mcp.json"), { width: 1600, height: 900 });
    for (const name of ["files", "broken"]) {
      await bench.command("Nexus: Approve MCP Server…");
      await bench.choose(name);
      await bench.dialog(`Start the MCP server ${name}?`, "Approve and Start");
      await bench.told(`The MCP server ${name}`);
    }
    for (const theme of ["dark", "hc-light"] as const) {
      await bench.dress(theme);
      await bench.openPanel();
      await bench.unfold("Context Window", "Layers");
      for (const width of [180, 320, 1000]) {
        await bench.widenSideBar(width);
        await bench.heighten("Context Window", 420);
        await settle(bench);
        await bench.row("Layers", "files").last().hover();
        await look(bench, `servers-${theme}-${width}`);
      }
      await bench.widenSideBar(320);
    }
    await bench.openChat("Model of you");
    await bench.newChat();
    await bench.ask(`[[tool mcp__files__read_text_file ${JSON.stringify({ path: path.join(folder, "AGENTS.md") })}]]`);
    await bench.toolQuestion("Allow the model to call");
    await look(bench, "question");
    await bench.answerTool("Allow the model to call", "Allow");
    await bench.response("You said").waitFor();
    await look(bench, "question-answered");
    bench.undress();
    await bench.close();
  },
  LONG_MS,
);

async function open(workspace: string, file: string, size = SIZE): Promise<Workbench> {
  const bench = await window({ size, workspace, file });
  await bench.ready();
  return bench;
}

async function look(bench: Workbench, name: string): Promise<void> {
  console.log(await bench.screenshot(name, LOOKS));
}

async function settle(bench: Workbench): Promise<void> {
  await bench.page.locator(".part.editor .editor-group-container.active .view-lines").first().click();
  await bench.command("Notifications: Clear All Notifications");
  await bench.page.mouse.move(SIZE.width * 0.5, SIZE.height * 0.8);
  await bench.page.waitForTimeout(SETTLE_MS);
}

test(
  "what other assistants read",
  async () => {
    const folder = path.join(monorepo(world(), "assistants"), "packages/api");
    const bench = await open(folder, path.join(folder, "AGENTS.md"));
    await bench.openPanel();
    await bench.command("Nexus: Choose the View");
    await bench.page.waitForTimeout(SETTLE_MS);
    await look(bench, "assistants-pick");
    await bench.choose("Claude Code");
    for (const theme of THEMES) {
      await bench.dress(theme);
      await bench.openPanel();
      await bench.unfold("Context Window", "What Costs What", "Layers");
      for (const width of [180, 340]) {
        await bench.widenSideBar(width);
        await bench.heighten("Context Window", 480);
        await settle(bench);
        await look(bench, `assistants-${theme}-${width}`);
        await bench.unfold("Context Window");
        await settle(bench);
        await look(bench, `assistants-${theme}-${width}-readers`);
        await bench.unfold("Context Window", "What Costs What", "Layers");
      }
    }
    bench.undress();
    await bench.close();
  },
  LONG_MS,
);

test("the settings", async () => {
  const folder = path.join(monorepo(world(), "settings"), "packages/api");
  const bench = await open(folder, path.join(folder, "AGENTS.md"));
  await bench.command("Preferences: Open Settings (UI)");
  await bench.page.locator(".settings-editor .settings-header").waitFor();
  await bench.type("nexus.server");
  await bench.page.locator(".settings-header .action-label", { hasText: "Remote" }).click(); // those of the machine
  await bench.page.locator(".settings-editor", { hasText: "Shared" }).waitFor();
  await bench.page.waitForTimeout(SETTLE_MS);
  await look(bench, "settings");
  await bench.close();
});
