/** The pictures of the README: `node scripts/e2e.mjs --screenshots`. They are kept, and looked at, by people. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, beforeEach, test } from "vitest";
import type { Message } from "../../src/protocol/index.ts";
import { claudeCode } from "./harness/claude.ts";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, window, world } from "./harness/each.ts";
import { monorepo } from "./harness/monorepo.ts";
import { servers, signal } from "./harness/processes.ts";
import type { Opening, Workbench } from "./harness/workbench.ts";
import { copyExample, EXTENSION, leaveModelToEditor, REPOSITORY } from "./harness/world.ts";

const FOLDER = path.join(EXTENSION, "media/screenshots");
/** Pictures that are looked at, and not kept. */
const LOOKS = path.join(process.env.NEXUS_E2E_CACHE ?? path.join(EXTENSION, ".e2e"), "looks");
/** The pictures of the walkthrough. */
const WALKTHROUGH = path.join(EXTENSION, "walkthrough");
const SIZE = { width: 1280, height: 800 };
const LONG_MS = 400_000; // some forty pictures
const SETTLE_MS = 1_500; // fades, and what VS Code does when it has time
const QUESTION = "May two session tokens be compared with ==?";
const ANSWER = `No. \`==\` stops at the first byte that differs, so the time it takes tells how much of a guess is right. The conventions of **auth-service** ask for a comparison in constant time:

\`\`\`python
import hmac

def is_same(given: bytes, kept: bytes) -> bool:
    return hmac.compare_digest(given, kept)
\`\`\`

1. Compare digests of the tokens, not the tokens: what is kept need never be a token itself.
2. Add the guess by timing to \`tests/attacks/\`, one file per attack.
`;

const MISTAKEN = `{
  "provider": {
    "model": "gpt-4o"
  },
  "context": {
    "ancestor_depth": 2,
    "keep_recent_turns": "six"
  },
  "permissions": {
    "level": "sandboxd",
    "alow": ["fs.read", "fs.write"]
  },
  "parameters": {
    "temperature": 0.2
  }
}
`;

beforeAll(() => {
  const says = { name: "Model of your chat", answers: { [QUESTION]: ANSWER } };
  writeFileSync(path.join(world().root, "model.json"), JSON.stringify(says));
});
beforeEach(photographFailure);

test("the panel", async () => {
  const folder = await company("panel");
  const bench = await open({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
  await bench.openPanel();
  await bench.widenSideBar(430);
  await bench.unfold("Context Window", "What Costs What", "Conversations");
  await bench.heighten("Context Window", 290);
  for (const scheme of ["dark", "light"] as const) {
    await bench.page.emulateMedia({ colorScheme: scheme });
    await settle(bench);
    await keep(bench, `panel-${scheme}`);
  }
  await bench.close();
});

test(
  "the panel in every theme and width",
  async () => {
    const folder = await company("looks");
    const bench = await open({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    for (const theme of ["dark", "light", "hc-dark", "hc-light"] as const) {
      await bench.dress(theme);
      await bench.openPanel();
      await bench.unfold("Context Window", "What Costs What");
      for (const width of [180, 300, 430]) {
        await bench.widenSideBar(width);
        await bench.heighten("Context Window", width < 250 ? 480 : 400);
        await settle(bench);
        console.log(await bench.photograph(".part.sidebar", `panel-${theme}-${width}`, LOOKS));
        if (width === 300) console.log(await bench.photograph(".part.sidebar", `panel-${theme}`, WALKTHROUGH));
      }
      console.log(await bench.photograph(".part.editor", `editor-${theme}`, LOOKS));
    }
    bench.undress();
    await bench.close();
  },
  LONG_MS,
);

test(
  "a lens in the prompt, menus by key, and the figures of before",
  async () => {
    const folder = await company("moments");
    const bench = await open({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    const look = async (name: string) => console.log(await bench.screenshot(name, LOOKS));
    const panel = await bench.openPanel();
    await bench.widenSideBar(340);
    await bench.unfold("Context Window", "What Costs What", "Layers");
    await panel.locator('.legend .entry[tabindex="0"]').focus();
    await bench.page.keyboard.press("Shift+F10");
    await bench.menu().first().waitFor();
    await look("menu-of-a-part");
    await bench.page.keyboard.press("Escape");
    await bench.row("What Costs What", /Soul/).first().click();
    await bench.row("What Costs What", /Soul/).first().press("Shift+F10");
    await bench.menu().first().waitFor();
    await look("menu-of-a-row");
    await bench.page.keyboard.press("Escape");
    await bench.openFile(".nexus3/NEXUS.md");
    const [server] = servers(world().pid);
    if (server) signal(server.pid, "SIGKILL");
    await panel.locator(".window[data-stale]").waitFor();
    await bench.page.waitForTimeout(SETTLE_MS / 2);
    await look("figures-of-before");
    await bench.ready();
    await bench.lens("30 tokens").click();
    await bench.page.locator(".part.editor .tab.active", { hasText: "system prompt" }).waitFor();
    await bench.page.waitForTimeout(SETTLE_MS);
    await look("lens-in-the-prompt");
    await bench.page.keyboard.press("Control+B");
    await bench.command("Nexus: Open Walkthrough");
    await bench.page.locator(".gettingStartedContainer img").first().waitFor();
    await bench.page.waitForTimeout(SETTLE_MS);
    await look("walkthrough");
    await bench.close();
  },
  LONG_MS,
);

test("the chat", async () => {
  const folder = await company("chat");
  leaveModelToEditor(folder);
  const bench = await open({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
  await bench.openChat("Model of your chat");
  await bench.newChat();
  await bench.ask(QUESTION);
  await bench.response("one file per attack").waitFor();
  await bench.openPanel();
  await bench.widenSideBar(340);
  await bench.widenChat(455);
  await bench.unfold("Context Window", "What Costs What");
  await bench.heighten("Context Window", 325);
  await settle(bench);
  await keep(bench, "chat-light");
  await bench.close();
});

test("the transcript", async () => {
  const folder = await company("transcript");
  const daemon = await Daemon.start(world(), folder);
  await daemon.request("nexus/session/compact", { workspaceFolder: uriOf(folder), session: "main" });
  await daemon.stop();
  const bench = await open({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
  await bench.page.emulateMedia({ colorScheme: "dark" });
  await bench.openPanel();
  await bench.widenSideBar(340);
  await bench.unfold("Context Window", "Conversations");
  await bench.row("Conversations", "main").click();
  await bench.page.locator(".part.editor .tab.active", { hasText: "main (conversation)" }).waitFor();
  await settle(bench);
  await keep(bench, "transcript-dark");
  await bench.close();
});

const CLAUDE = process.env.NEXUS_E2E_CLAUDE ?? "";

test.skipIf(CLAUDE === "")("beside a running Claude Code", async () => {
  const folder = monorepo(world(), "beside");
  const claude = await claudeCode(world(), CLAUDE, folder);
  const bench = await open({ workspace: folder, file: path.join(folder, "CLAUDE.md") });
  const panel = await bench.openPanel();
  await bench.page.emulateMedia({ colorScheme: "dark" });
  await bench.command("Terminal: Create New Terminal in Editor Area to the Side");
  await bench.page.locator(".terminal-wrapper.active").first().waitFor();
  await bench.page.waitForTimeout(SETTLE_MS);
  await bench.type(`${claude.commandLine}\n`);
  await bench.page.waitForTimeout(8 * SETTLE_MS);
  await bench.type("May a handler open a connection?\r");
  await panel.locator(".who.view", { hasText: "Claude Code: it runs here" }).waitFor({ timeout: LONG_MS / 8 });
  await bench.page.waitForTimeout(2 * SETTLE_MS);
  await bench.type("And in a test?\r");
  await bench.widenSideBar(360);
  await bench.unfold("Context Window", "What Costs What");
  await bench.heighten("Context Window", 560);
  await panel.locator("body").evaluate((body) => body.ownerDocument.defaultView?.scrollTo(0, 0));
  await bench.page.mouse.move(SIZE.width * 0.6, SIZE.height * 0.8);
  await bench.page.waitForTimeout(2 * SETTLE_MS);
  await keep(bench, "claude-code-dark");
  claude.stop();
  await bench.close();
});

test("diagnostics", async () => {
  const folder = await company("diagnostics");
  const file = path.join(folder, ".nexus3/config.json");
  writeFileSync(file, MISTAKEN);
  const bench = await open({ workspace: folder, file });
  await bench.page.emulateMedia({ colorScheme: "dark" });
  await bench.openPanel();
  await bench.widenSideBar(340);
  await bench.unfold("Context Window", "Layers");
  await bench.heighten("Context Window", 352);
  await (await bench.problems("permissions")).first().waitFor();
  await settle(bench);
  await bench.squiggles().nth(1).hover({ force: true });
  await bench.page.locator(".monaco-hover", { hasText: "sandboxed" }).first().waitFor();
  await keep(bench, "diagnostics-dark");
  await bench.close();
});

async function open(opening: Opening): Promise<Workbench> {
  const bench = await window({ size: SIZE, ...opening });
  await bench.ready();
  return bench;
}

/** No notice, no focus of the keyboard in a list, the pointer out of the way. */
async function settle(bench: Workbench): Promise<void> {
  await bench.command("Notifications: Clear All Notifications");
  await bench.page.locator(".part.editor .editor-group-container.active .view-lines").first().click();
  await bench.page.mouse.move(SIZE.width * 0.6, SIZE.height * 0.8);
  await bench.page.waitForTimeout(SETTLE_MS);
}

async function keep(bench: Workbench, name: string): Promise<void> {
  console.log(await bench.screenshot(name, FOLDER));
}

/** The example's innermost folder, with a conversation of some days about files that are really there. */
async function company(name: string): Promise<string> {
  const folder = path.join(copyExample(world(), path.join(name, "company")), "backend/auth-service");
  const config = path.join(folder, ".nexus3/config.json");
  writeFileSync(config, readFileSync(config, "utf8").replace("gpt-4.1", "gpt-4o"));
  const daemon = await Daemon.start(world(), folder);
  const here = { workspaceFolder: uriOf(folder) };
  try {
    for (const [session, questions] of Object.entries(CONVERSATIONS)) {
      for (const [index, question] of questions.entries()) {
        await daemon.request("nexus/session/append", { ...here, session, messages: turn(question, index) });
      }
    }
  } finally {
    await daemon.stop();
  }
  return folder;
}

const CONVERSATIONS: Readonly<Record<string, readonly string[]>> = {
  main: [
    "Where is a session token checked, and by what?",
    "Move the check of its age into auth/tokens.py.",
    "Which tests cover a token that was revoked?",
    "Write the attack with a token of another tenant.",
  ],
  "rotate-keys": ["Plan the rotation of the signing key."],
  "threat-model": ["What of the threat model does no test cover?"],
};

const SOURCES = ["conversation", "folder/prompt", "ledger"].map((name) =>
  path.join(REPOSITORY, "context/nexus_context", name),
);

/** A question, a file that was read for it, and an answer. */
function turn(question: string, index: number): Message[] {
  const files = SOURCES.flatMap((folder) => readdirSync(folder).map((name) => path.join(folder, name)))
    .filter((file) => file.endsWith(".py"))
    .sort();
  const read = files.slice(index * 5, index * 5 + 5).map((file) => readFileSync(file, "utf8"));
  const id = `call-${index}`;
  return [
    { role: "user", content: question },
    {
      role: "assistant",
      content: "I read the module and its tests first.",
      toolCalls: [{ id, name: "read_file", arguments: JSON.stringify({ path: "auth/tokens.py" }) }],
    },
    { role: "tool", toolCallId: id, content: read.join("\n") },
    { role: "assistant", content: "Done: the check is in one place now, and the test that was there still passes." },
  ];
}
