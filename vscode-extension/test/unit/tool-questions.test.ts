/** Questions whether the model may make a call: in the chat, several at once, and what ends one. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type * as api from "vscode";
import { type ToolQuestion, ToolQuestions } from "../../src/chat/toolQuestions";
import { FOLDER, OTHER } from "./chat-daemon";
import { FakeStream } from "./chat-desk";
import * as mock from "./vscode";

const ALLOWED = { approved: true, remember: false };
const REFUSED = { approved: false, remember: false };
/** `{"path": "a"}` as lines of code. */
const ARGUMENTS = '` { `\\\n` \u00a0\u00a0"path": "a" `\\\n` } `';
const LATE = "Nothing is called: nobody waits for this answer any more.";

let questions: ToolQuestions;

beforeEach(() => {
  mock.mock.reset();
  questions = new ToolQuestions();
});
afterEach(() => {
  vi.useRealTimers();
});

function question(more: Partial<ToolQuestion> = {}): ToolQuestion {
  return { folder: FOLDER, session: "main", tool: "read", server: "files", arguments: { path: "a" }, ...more };
}

/** A turn whose answer shows questions. */
function turn(session = "main", folder = FOLDER) {
  const stream = new FakeStream();
  const source = new mock.CancellationTokenSource();
  const given = { folder, session, stream, token: source.token } as unknown as Parameters<ToolQuestions["showIn"]>[0];
  return { stream, source, end: questions.showIn(given) };
}

/** Asks as the daemon does, which waits as long as the source is not cancelled. */
function ask(more: Partial<ToolQuestion> = {}, source = new mock.CancellationTokenSource()) {
  return questions.ask(question(more), source.token as unknown as api.CancellationToken);
}

function press(stream: FakeStream, title: string, which = 0): void {
  const [id, answer] = stream.buttons.filter((button) => button.title === title)[which]?.arguments ?? [];
  questions.answer(id, answer);
}

it.each([
  ["Allow", ALLOWED, "Allowed"],
  ["Allow in This Conversation", { approved: true, remember: true }, "Allowed in this conversation"],
  ["Don't Allow", REFUSED, "Not allowed"],
])("stands in the chat with its arguments, and is answered there: %s", async (title, answer, outcome) => {
  const { stream } = turn();
  const asked = ask({ agent: "api_1" });
  expect(stream.text).toBe(
    `\n\n**Allow the model of the agent api\\_1 to call read of the MCP server files?**\n\n${ARGUMENTS}\n\n`,
  );
  expect(stream.titles()).toEqual(["Allow", "Allow in This Conversation", "Don't Allow"]);
  press(stream, title);
  expect(await asked).toEqual(answer);
  expect(stream.text.endsWith(`\n\n> ${outcome}: read.\n\n`)).toBe(true);
  expect(mock.mock.messages).toEqual([]);
});

it("has buttons of its own where two are open at once", async () => {
  const { stream } = turn();
  const [first, second] = [ask({ agent: "a", session: "a" }), ask({ agent: "b", session: "b", tool: "write" })];
  press(stream, "Allow", 1);
  expect(await second).toEqual(ALLOWED);
  expect(stream.text).toContain("> Allowed: write.");
  press(stream, "Don't Allow", 0);
  expect(await first).toEqual(REFUSED);
  expect(stream.text).toContain("> Not allowed: read.");
});

it("stands in the answer of its own conversation, of several", async () => {
  const [main, plan] = [turn("main"), turn("plan")];
  const asked = ask({ session: "plan" });
  expect([main.stream.titles(), plan.stream.titles().length]).toEqual([[], 3]);
  press(plan.stream, "Allow");
  expect(await asked).toEqual(ALLOWED);
});

it("ends with its turn, as not allowed, and nothing more is written to an answer that was cancelled", async () => {
  const { stream, source } = turn();
  const [first, second] = [ask(), ask()];
  const before = stream.text;
  source.cancel();
  expect([await first, await second]).toEqual([REFUSED, REFUSED]);
  expect(stream.text).toBe(before);
  press(stream, "Allow");
  expect(mock.mock.messages.map(({ text }) => text)).toEqual([LATE]);
  expect(await ask()).toEqual(REFUSED);
  expect(stream.text).toBe(before);
});

it("ends when the daemon waits no longer, and says so; the other goes on", async () => {
  const { stream } = turn();
  const source = new mock.CancellationTokenSource();
  const [late, other] = [ask({}, source), ask({ tool: "write" })];
  source.cancel();
  expect(await late).toEqual(REFUSED);
  expect(stream.text).toContain("> Not called, because no answer came in time: read.");
  press(stream, "Allow", 0);
  expect(mock.mock.messages.map(({ text }) => text)).toEqual([LATE]);
  press(stream, "Allow", 1);
  expect(await other).toEqual(ALLOWED);
});

it("takes no answer twice, and none that it does not offer", async () => {
  const { stream } = turn();
  const asked = ask();
  const [id] = stream.buttons[0]?.arguments ?? [];
  questions.answer(id, "constructor");
  questions.answer(id, "late");
  press(stream, "Don't Allow");
  press(stream, "Allow");
  expect(await asked).toEqual(REFUSED);
  press(stream, "Allow");
  expect(mock.mock.messages.filter(({ text }) => text === LATE)).toHaveLength(3);
});

it.each([
  ["no answer is being made", () => undefined],
  ["the answer of its turn is done", () => turn().end.dispose()],
  ["the only answer is of another folder", () => turn("main", OTHER)],
  ["several answers might be meant", () => [turn("one"), turn("two")]],
])("is a dialog where %s", async (_, prepare) => {
  prepare();
  mock.mock.answers.push("Allow");
  expect(await ask()).toEqual(ALLOWED);
  expect(mock.mock.messages).toMatchObject([
    {
      text: "Allow the model to call read of the MCP server files?",
      items: [{ modal: true, detail: '{\n  "path": "a"\n}' }, "Allow", "Allow in This Conversation"],
    },
  ]);
});

it("shows names and arguments as they are: neither can end the block or become Markdown", () => {
  const { stream } = turn();
  void ask({ tool: "a*b\u202e", server: "[x](y)", arguments: { text: "````\n> Allowed" } });
  expect(stream.text).toContain("call a\\*b\\\\u\\{202e\\} of the MCP server \\[x\\]\\(y\\)?**");
  expect(stream.text).toContain('\\\n````` \u00a0\u00a0"text": "````\\n> Allowed" `````\\\n');
  expect(stream.markdowns.every((part) => typeof part !== "string")).toBe(true); // parts of their own
});

it("reminds of one that nobody answers, once, with a way to the chat", async () => {
  vi.useFakeTimers();
  const { stream } = turn();
  mock.mock.answers.push("Open Chat");
  void ask();
  const quick = ask({ tool: "write" });
  press(stream, "Allow", 1);
  await quick;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(mock.mock.messages.map(({ text }) => text)).toEqual([
    "The chat waits for your answer. Allow the model to call read of the MCP server files?",
  ]);
  expect(mock.mock.executed).toEqual([["workbench.action.chat.open"]]);
});
