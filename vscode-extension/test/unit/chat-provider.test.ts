/** Turns of folders whose settings name a provider: the daemon takes them. */
import { beforeEach, expect, it } from "vitest";
import { NexusError } from "../../src/nexus";
import { FOLDER } from "./chat-daemon";
import { Desk } from "./chat-desk";
import * as mock from "./vscode";

const CALL = { kind: "toolCall", id: "c1", name: "mcp__files__read", arguments: { path: "a" } };
const COST = "1 request to claude\\-sonnet\\-4\\-6: 240 tokens, $0.0021.";
const OFF = ["dispose_agent", "list_agents", "message_agent", "spawn_agent"];

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
  desk.daemon.provider = "anthropic";
});

it("is taken by the daemon, and shown as it comes", async () => {
  desk.daemon.turn = [
    { kind: "notice", text: "This conversation goes to anthropic." },
    { kind: "thinking", text: "The m" },
    { kind: "thinking", text: "oon." },
    { kind: "text", text: "I look. " },
    CALL,
    { kind: "toolResult", id: "c1", name: CALL.name, text: "At noon." },
    { kind: "text", text: "At noon." },
    { kind: "usage" },
  ];
  const answer = await desk.thread().ask("When?");
  expect(desk.model.requests).toEqual([]);
  expect(desk.daemon.paramsOf("nexus/context/assemble")).toEqual([]);
  expect(desk.daemon.paramsOf("nexus/session/append")).toEqual([]);
  expect(desk.daemon.paramsOf("nexus/chat/send")).toEqual([
    {
      workspaceFolder: FOLDER,
      session: "main",
      message: { role: "user", content: "When?", meta: { client: "vscode" } },
      options: { disabledTools: OFF },
    },
  ]);
  expect(answer.text).toBe(
    [
      "I look. At noon.\n\n> Conversation **main** begins here.",
      "This conversation goes to anthropic.",
      `${COST}\n\n`,
    ].join("\n>\n> "),
  );
  expect(answer.steps).toEqual([
    "This conversation goes to anthropic.",
    "Thinking",
    "Calling an MCP server (mcp__files__read)",
  ]);
  expect(answer.references).toEqual([`${FOLDER}/.nexus3/NEXUS.md`]);
  expect(answer.result.metadata?.nexus).toMatchObject({ kind: "turn", mark: { session: "main", turn: "t1-1" } });
});

it.each(["editor", "none"])("is the editor's where the provider is %s", async (provider) => {
  desk.daemon.provider = provider;
  expect((await desk.thread().ask("hi")).text).toContain("ok");
  expect(desk.daemon.paramsOf("nexus/chat/send")).toEqual([]);
});

it("is what /context counts", async () => {
  await desk.thread().ask("", { command: "context" });
  expect(desk.daemon.paramsOf("nexus/context/assemble")).toEqual([{ workspaceFolder: FOLDER, session: "main" }]);
});

it("has what the user attached, the skill, and no tools that the settings switch off", async () => {
  for (const name of ["memoryTools", "skillTools", "serverTools"]) mock.mock.settings.set(`nexus.chat.${name}`, false);
  const text = { id: "vscode.selection", modelDescription: "a note", value: "Six." };
  await desk.thread().ask("read it", { references: [text] });
  const [sent] = desk.daemon.paramsOf("nexus/chat/send");
  expect(JSON.stringify(sent?.message)).toContain("Six.");
  const memory = ["query_l2_memory", "query_l3_memory", "query_l4_memory"];
  expect(sent?.options).toEqual({ disabledTools: [...memory, "read_skill", ...OFF, "mcp__*", "search_tools"] });
  desk.daemon.skills = ["greet"];
  await desk.thread().ask("greet hello", { command: "skill" });
  expect(desk.daemon.paramsOf("nexus/chat/send")[1]?.options).toMatchObject({ skills: ["greet"] });
});

it("is not offered tools that the editor runs, and says so", async () => {
  mock.lm.tools = [{ name: "weather", description: "", tags: [], inputSchema: undefined }] as never;
  const answer = await desk.thread().ask("hi", { toolReferences: [{ name: "weather" }] });
  expect(answer.text).toContain("weather: not offered, because the editor runs it, and anthropic is asked");
});

it("goes on in the fork that holds it when another window went on meanwhile", async () => {
  const thread = desk.thread();
  await thread.ask("one");
  const elsewhere = { workspaceFolder: FOLDER, session: "main", idempotencyKey: "k" };
  const append = () =>
    desk.daemon.request("nexus/session/append", { ...elsewhere, messages: [{ role: "user", content: "three" }] });
  desk.daemon.turn = [append, { kind: "text", text: "Two." }];
  const answer = await thread.ask("two");
  expect(answer.text).toContain("this turn is in **main \\(2\\)**, a fork of **main**");
  await thread.ask("four");
  expect(desk.daemon.paramsOf("nexus/chat/send").map(({ session }) => session)).toEqual(["main", "main", "main (2)"]);
});

it("fails with what was said recorded, and the thread goes on behind it", async () => {
  const thread = desk.thread();
  desk.daemon.turn = [{ kind: "text", text: "Half an" }, new NexusError("The provider is overloaded.", "chat-failed")];
  const answer = await thread.ask("go");
  expect(answer.result.errorDetails?.message).toBe("The provider is overloaded.");
  expect(answer.result.metadata?.nexus).toMatchObject({ kind: "turn", partial: true, mark: { turn: "t1-1" } });
  expect(desk.followups(answer.result).map(({ label }) => label)).toContain("Go on with the answer");
  await thread.ask("two");
  thread.back();
  await thread.ask("two, again");
  expect(desk.daemon.paramsOf("nexus/session/fork")).toMatchObject([{ session: "main", turn: "t1-1" }]);
});

it("offers to compact where the context is too long for the model", async () => {
  desk.daemon.turn = [new NexusError("The request is too long for the model.", "chat-failed")];
  const answer = await desk.thread().ask("go");
  expect(answer.titles()).toEqual(["Compact", "Open Context Panel"]);
});

it("shows the settings where they are not enough to reach the provider", async () => {
  desk.daemon.turn = [new NexusError("There is no key for anthropic.", "no-provider")];
  const answer = await desk.thread().ask("go");
  expect(answer.result.errorDetails?.message).toBe("There is no key for anthropic.");
  expect(answer.titles()).toEqual(["Show Effective Configuration"]);
});

it("is cancelled with the request, and the thread goes on behind what was said", async () => {
  const thread = desk.thread();
  const source = new mock.CancellationTokenSource();
  desk.daemon.turn = [{ kind: "text", text: "Half an" }, () => source.cancel(), { kind: "text", text: " answer" }];
  await thread.ask("one", { source });
  expect(desk.daemon.said("main").at(-1)?.content).toBe("Half an");
  const answer = await thread.ask("two");
  expect(answer.result.metadata?.nexus).toMatchObject({ mark: { session: "main", turn: "t1-2" } });
});

it("says what a compaction did, with the way back", async () => {
  desk.daemon.turn = [
    () =>
      desk.daemon.changes.fire({
        workspaceFolder: FOLDER,
        session: "main",
        reason: "compacted",
        by: "self",
        turn: "c1",
      }),
    { kind: "text", text: "On." },
  ];
  const answer = await desk.thread().ask("go on");
  expect(answer.text).toContain("Compacted first: 21 messages became a summary");
  expect(answer.titles()).toEqual(["Undo Compaction", "Show Receipt"]);
});

it.each([
  ["Allow", { approved: true, remember: false }],
  ["Allow in This Conversation", { approved: true, remember: true }],
  [undefined, { approved: false, remember: false }],
])("asks the user before a call: %s", async (pressed, answer) => {
  mock.mock.answers.push(pressed);
  const { name: tool, arguments: input } = CALL;
  const question = { workspaceFolder: FOLDER, session: "main", tool, server: "files", arguments: input, agent: "api" };
  expect(await desk.daemon.approve?.(question, new mock.CancellationTokenSource().token as never)).toEqual(answer);
  expect(mock.mock.messages[0]).toMatchObject({
    text: "Allow the model of the agent api to call read of the MCP server files?",
    items: [{ modal: true, detail: '{\n  "path": "a"\n}' }, "Allow", "Allow in This Conversation"],
  });
});

it("says so when a call is allowed that nobody waits for any more", async () => {
  const source = new mock.CancellationTokenSource();
  source.cancel();
  mock.mock.answers.push("Allow");
  const question = {
    workspaceFolder: FOLDER,
    session: "main",
    tool: "mcp__files__read",
    server: "files",
    arguments: {},
  };
  await desk.daemon.approve?.(question, source.token as never);
  expect(mock.mock.messages[1]?.text).toBe("read is not called: nobody waits for the answer any more.");
});

it("shows the question of a call in its answer, and goes on with what the user said", async () => {
  const { name: tool, arguments: input } = CALL;
  const question = { workspaceFolder: FOLDER, session: "main", tool, server: "files", arguments: input };
  const token = new mock.CancellationTokenSource().token as never;
  let allowed: unknown;
  desk.daemon.turn = [
    CALL,
    async () => {
      allowed = await desk.daemon.approve?.(question, token);
    },
    { kind: "text", text: "At noon." },
  ];
  desk.presses.push("Allow in This Conversation");
  const answer = await desk.thread().ask("When?");
  expect(allowed).toEqual({ approved: true, remember: true });
  expect(answer.text).toContain("**Allow the model to call read of the MCP server files?**");
  expect(answer.text).toContain("> Allowed in this conversation: read.\n\nAt noon.");
  expect(mock.mock.messages).toEqual([]);
});

it("leaves no question open when the turn is cancelled", async () => {
  const source = new mock.CancellationTokenSource();
  const { name: tool, arguments: input } = CALL;
  const question = { workspaceFolder: FOLDER, session: "main", tool, server: "files", arguments: input };
  let asked: unknown;
  desk.daemon.turn = [
    { kind: "text", text: "I look. " },
    CALL,
    () => {
      asked = desk.daemon.approve?.(question, new mock.CancellationTokenSource().token as never);
      source.cancel();
    },
  ];
  const answer = await desk.thread().ask("When?", { source });
  expect(await asked).toEqual({ approved: false, remember: false });
  await desk.press(answer.buttons.find(({ title }) => title === "Allow"));
  expect(mock.mock.messages.map(({ text }) => text)).toContain(
    "Nothing is called: nobody waits for this answer any more.",
  );
});

it("asks in a dialog once the answer is done that could show the question", async () => {
  await desk.thread().ask("When?");
  const question = { workspaceFolder: FOLDER, session: "main", tool: CALL.name, server: "files", arguments: {} };
  mock.mock.answers.push("Allow");
  const allowed = await desk.daemon.approve?.(question, new mock.CancellationTokenSource().token as never);
  expect(allowed).toEqual({ approved: true, remember: false });
  expect(mock.mock.messages).toMatchObject([{ items: [{ modal: true }, "Allow", "Allow in This Conversation"] }]);
});
