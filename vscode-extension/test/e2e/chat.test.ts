/** Conversations of one folder: a turn, its record, cancellation, fork, compaction and back, an agent's view. */
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message, SessionInfo } from "../../src/protocol/index.ts";
import { Daemon, ledger, NEXT_TURN, uriOf } from "./harness/daemon.ts";
import { heard, photographFailure, prepared, until, window, world } from "./harness/each.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample, leaveModelToEditor } from "./harness/world.ts";

/** Enough for a compaction to be worth it. */
const TURNS = 12;
const WORDY = 60;

let folder: string;
let bench: Workbench;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "chat"), "backend/auth-service");
    leaveModelToEditor(folder);
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    await bench.ready();
    await bench.openChat();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("a turn is sent with the folder's context, and lands in the ledger", async () => {
  await bench.ask("may two tokens be compared with ==?");
  await bench.response("You said: may two tokens be compared").waitFor();
  const sent = heard().findLast((one) => one.event === "request")?.messages ?? [];
  const options = { model: "parrot", maxContextTokens: 200_000, memoryTools: true, skillTools: true, mcpTools: true };
  const { systemPrompt } = await until(
    () => other.request("nexus/context/assemble", { workspaceFolder: uriOf(folder), session: "other", options }),
    (context) => context.systemPrompt === sent[0]?.text, // once the other daemon has heard which model was picked
  );
  expect(systemPrompt).not.toBe("");
  expect(sent.at(-1)?.text).toContain("may two tokens be compared with ==?");
  expect(await until(written, (all) => all.length > 1)).toEqual([
    "user: may two tokens be compared with ==?",
    "assistant: Heard 2 messages. You said: may two tokens be compared with ==?",
  ]);
});

test("the next turn knows the one before", async () => {
  await bench.ask("and in constant time?");
  await bench.response("You said: and in constant time?").waitFor();
  const sent = heard().findLast((one) => one.event === "request")?.messages ?? [];
  expect(sent.map((message) => message.text).join("\n")).toContain("may two tokens be compared with ==?");
  expect((await until(written, (all) => all.length > 3)).slice(2)).toEqual([
    "user: and in constant time?",
    "assistant: Heard 4 messages. You said: and in constant time?",
  ]);
});

test("an edit is told by a note; applied at once, it breaks a provider's cache, which is named with its price", async () => {
  const panel = await bench.openPanel();
  const options = { model: "parrot", maxContextTokens: 200_000, memoryTools: true, skillTools: true, mcpTools: true };
  // the other daemon has had a request of the same beginning, so the same edit breaks the same of it
  await other.request("nexus/context/assemble", { ...here(), message: "what is reused?", options });
  await bench.ask("what is reused?");
  await bench.response("You said: what is reused?").waitFor();
  await bench.openFile(".nexus3/CONTEXT.md");
  await bench.cursorTo("start");
  await bench.type("Nobody is on call on Mondays. ");
  await bench.page.keyboard.press("Control+S");
  const changes = panel.locator(".fact", { hasText: "Changes" });
  await changes.locator("dd", { hasText: "Told by a note: Context Instructions" }).waitFor();
  await changes.getByRole("button", { name: "Apply Now" }).click();
  await changes.waitFor({ state: "detached" });
  const text = () => panel.locator(".fact", { hasText: "Cache" }).locator("dd").innerText();
  const shows = await until(
    async () => ({
      cache: (await other.request("nexus/context/usage", { ...here(), nextTurn: NEXT_TURN })).cache,
      text: await text(),
    }),
    ({ cache, text }) => cache?.broke !== undefined && text.includes(`${whole(cache.reusedTokens)} of `),
  );
  const { broke, reusedTokens, prefixTokens } = shows.cache ?? {};
  expect(broke?.label).toBe("Context Instructions");
  expect(shows.text.split("\n").filter(Boolean)).toEqual([
    "Broken: Context Instructions",
    "Show",
    `${whole(broke?.tokens)} tokens must be read again. ${whole(reusedTokens)} of ${whole(prefixTokens)} tokens can be reused.`,
  ]);
});

test("a turn that is cancelled stops the model, and what came is kept", async () => {
  await bench.ask("[[slow]] count");
  await bench.response("word5").waitFor();
  await bench.page.locator(".interactive-input-part .codicon-stop-circle").first().click();
  await until(heard, (all) => all.at(-1)?.event === "cancelled");
  const said = (await until(written, (all) => all.at(-1)?.includes("word5") === true)).at(-1);
  expect(said).toMatch(/^assistant: word1 word2 word3 word4 word5/);
});

test("a conversation can be forked, and the fork goes on alone", async () => {
  await bench.command("Nexus: Fork Conversation");
  await bench.answer("Fork", "second-try");
  const sessions = await until(listed, (all) => all.some((one) => one.session === "second-try"));
  const [main, fork] = ["main", "second-try"].map((name) => sessions.find((one) => one.session === name));
  expect(fork?.turns).toBe(main?.turns);
  expect(fork?.forkedFrom).toBe("main");
  await bench.ask("and what of the fork?");
  await bench.response("You said: and what of the fork?").waitFor();
  const goesOn = (all: readonly SessionInfo[]) => turns(all, "second-try") > (fork?.turns ?? 0);
  expect(turns(await until(listed, goesOn), "main")).toBe(main?.turns);
});

test("a reloaded window goes on in the same conversation, with the same chat and figures", async () => {
  const usage = await other.request("nexus/context/usage", { ...here(), session: "second-try", nextTurn: NEXT_TURN });
  const about = usage.counter.exact ? "" : "about ";
  const label = await until(
    () => bench.ready(),
    (said) => said.startsWith(`Nexus: ${about}${whole(usage.total)} of ${whole(usage.available)} tokens, `),
  );
  await bench.refresh();
  await until(
    () => bench.ready(),
    (said) => said === label,
  );
  await bench.response("You said: and what of the fork?").waitFor();
  const before = turns(await listed(), "second-try");
  await bench.ask("and after the reload?");
  await bench.response("You said: and after the reload?").waitFor();
  await until(listed, (all) => turns(all, "second-try") === before + 1);
});

test("a turn shows in another window on the same folder", async () => {
  // after the reload: VS Code keeps for both windows together which chat they show, and restores that of either
  const session = "second-try";
  const second = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
  await second.ready();
  await second.openPanel();
  await second.unfold("Context Window", "Conversations");
  const figures = async () => {
    // the list first: a turn that ends between the two requests is then in the usage as well
    const { messages = 0 } = (await listed()).find((one) => one.session === session) ?? {};
    const usage = await other.request("nexus/context/usage", { ...here(), session, nextTurn: NEXT_TURN });
    const { total, available, counter } = usage;
    return {
      used: `${counter.exact ? "" : "≈ "}${whole(total)}`,
      status: `Nexus: ${counter.exact ? "" : "about "}${whole(total)} of ${whole(available)} tokens, `,
      messages,
    };
  };
  const shows = async ({ used, status, messages }: Awaited<ReturnType<typeof figures>>) => {
    await until(
      () => second.ready(),
      (label) => label.startsWith(status),
    );
    await until(
      () => second.webview().locator(".window .used").innerText(),
      (text) => text === used,
    );
    await until(
      () => second.rows("Conversations"),
      (rows) => rows.some((row) => row.startsWith(`${session}, current, `) && row.includes(` ${messages} messages`)),
    );
  };
  const before = await figures();
  await shows(before);
  await bench.ask("who else is told?");
  await bench.response("You said: who else is told?").waitFor();
  const after = await until(figures, (now) => now.messages === before.messages + 2);
  expect(after.used).not.toBe(before.used);
  await shows(after);
  await second.close();
});

test("a compaction is made by the chat's model, says what it did, and can be undone", async () => {
  await bench.command("Nexus: Switch Conversation");
  await bench.choose("main");
  for (let turn = 1; turn <= TURNS; turn++) {
    const messages: Message[] = [
      { role: "user", content: `Step ${turn}: what does the module do next?` },
      { role: "assistant", content: `In step ${turn} it checks a token. `.repeat(WORDY) },
    ];
    await other.request("nexus/session/append", { workspaceFolder: uriOf(folder), session: "main", messages });
  }
  const before = await shown();
  await bench.command("Nexus: Compact Conversation");
  const after = await until(shown, (text) => text !== before);
  expect(after).toContain("Summary by the test model");
  expect(await bench.told("became a summary")).toContain("became a summary by parrot, ");
  await bench.command("Nexus: Undo Compaction");
  await until(shown, (text) => text === before);
});

test("an agent is spawned, and the panel shows what it sees", async () => {
  await bench.command("Nexus: Spawn Agent");
  await bench.answer("its folder");
  await bench.answer("(1/3)", "checker");
  await bench.answer("(2/3)");
  await bench.answer("(3/3)", "Check every comparison of secrets.");
  await bench.told("checker is there");
  const panel = await bench.openPanel();
  const used = () => panel.locator(".window .used").innerText();
  const { rows: costs } = await other.request("nexus/context/usage", {
    workspaceFolder: uriOf(folder),
    session: "main",
  });
  const history = costs.filter((row) => row.category === "history").reduce((sum, row) => sum + row.tokens, 0);
  await panel.locator(".legend .tokens", { hasText: new Intl.NumberFormat("en").format(history) }).waitFor();
  const own = await used();
  await bench.command("Nexus: View as Agent");
  await bench.choose("checker");
  await panel.locator(".who-name", { hasText: "checker" }).waitFor();
  const agent = { workspaceFolder: uriOf(folder), agent: "checker" };
  const usage = await other.request("nexus/context/usage", { ...agent, nextTurn: NEXT_TURN });
  await until(used, (text) => text === `${usage.counter.exact ? "" : "≈ "}${whole(usage.total)}`);
  await bench.unfold("Context Window", "Agents");
  const cost = `${usage.counter.exact ? "" : "≈ "}${whole(usage.total)} tokens`;
  await until(
    () => bench.rows("Agents"),
    (rows) => rows.some((row) => row.startsWith("agent checker, ") && row.endsWith(`, ${cost}`)),
  );
  await panel.locator(".who .link").click();
  await until(used, (text) => text === own);
});

/** The ledger's messages of `main`, but for the one that says when it began. */
async function written(): Promise<string[]> {
  const messages = (await ledger(world(), folder)).map(({ role, content }) => `${role}: ${content}`);
  return messages.filter((message) => !message.startsWith("user: [Session started:"));
}

async function listed(): Promise<readonly SessionInfo[]> {
  return (await other.request("nexus/session/list", { workspaceFolder: uriOf(folder) })).sessions;
}

function turns(sessions: readonly SessionInfo[], session: string): number {
  return sessions.find((one) => one.session === session)?.turns ?? 0;
}

function here() {
  return { workspaceFolder: uriOf(folder), session: "main" };
}

function whole(value = Number.NaN): string {
  return new Intl.NumberFormat("en").format(value);
}

async function shown(): Promise<string> {
  return JSON.stringify(
    await other.request("nexus/session/messages", { workspaceFolder: uriOf(folder), session: "main" }),
  );
}
