/** What is known of the next message: the model, and what VS Code will attach, corrected by the last message. */
import { beforeEach, expect, test, vi } from "vitest";
import type * as vscode from "vscode";
import { makeNextTurn } from "../../src/nextTurn";
import { events, lm, mock, Uri, workspace } from "./vscode";

const MODEL = { id: "m", vendor: "v", maxInputTokens: 100, capabilities: { toolCalling: false } };
const AGENTS = "file:///w/AGENTS.md";
const MINE = "vscode-userdata:/mine.instructions.md";

const memento = () => {
  const values = new Map<string, unknown>();
  return {
    get: (key: string, fallback?: unknown) => values.get(key) ?? fallback,
    update: async (key: string, value: unknown) => void values.set(key, value),
  };
};

function begin(context = { globalState: memento(), workspaceState: memento() }) {
  const made = makeNextTurn(context as unknown as vscode.ExtensionContext);
  const changed = vi.fn();
  made.onDidChange(changed);
  const uris = async () => (await made.params()).attachments?.map(({ uri }) => uri);
  const learn = (uris: string[], isPlain = true) =>
    made.learn(uris.map((uri) => Uri.parse(uri)) as unknown as vscode.Uri[], isPlain);
  return { made, changed, uris, learn, context };
}

let there = true;

beforeEach(() => {
  mock.reset();
  there = true;
  lm.models = [];
  mock.settings.set("chat.useAgentsMdFile", true);
  workspace.workspaceFolders = [{ uri: Uri.file("/w"), name: "w", index: 0 }];
  Object.assign(workspace.fs, {
    async stat(uri: Uri) {
      if (!there || uri.toString() !== AGENTS) throw new Error("there is no such file");
      return { type: 1 };
    },
  });
});

test("memory tools are offered as the only model there is can call them; which model counts is the daemon's", async () => {
  lm.models = [MODEL];
  expect(await begin().made.params()).toEqual({ attachments: [{ uri: AGENTS }], options: { memoryTools: false } });
});

test("of several models the one counts that the chat used last; else none, which may call tools", async () => {
  const other = { ...MODEL, id: "n", capabilities: undefined };
  lm.models = [MODEL, other];
  expect((await begin().made.params()).options).toEqual({ memoryTools: true, skillTools: true, mcpTools: true });
  const context = { globalState: memento(), workspaceState: memento() };
  await context.globalState.update("nexus.chat.model", { vendor: "v", id: "m" });
  expect((await begin(context).made.params()).options).toEqual({ memoryTools: false });
  await context.globalState.update("nexus.chat.model", { vendor: "v", id: "n" });
  expect((await begin(context).made.params()).options).toEqual({ memoryTools: true, skillTools: true, mcpTools: true });
  mock.settings.set("nexus.chat.agentTools", true);
  expect((await begin(context).made.params()).options).toEqual({
    memoryTools: true,
    skillTools: true,
    mcpTools: true,
    agentTools: true,
  });
  mock.settings.clear();
  mock.settings.set("nexus.chat.memoryTools", false);
  expect((await begin(context).made.params()).options).toEqual({
    memoryTools: false,
    skillTools: true,
    mcpTools: true,
  });
  mock.settings.set("nexus.chat.skillTools", false);
  expect((await begin(context).made.params()).options).toEqual({ memoryTools: false, mcpTools: true });
  mock.settings.set("nexus.chat.serverTools", false);
  expect((await begin(context).made.params()).options).toEqual({ memoryTools: false });
});

test("what came with the last message comes again, and what did not come does not; after a reload, too", async () => {
  const { uris, learn, changed, context } = begin();
  expect(await uris()).toEqual([AGENTS]);
  await learn([MINE]);
  expect(changed).toHaveBeenCalledOnce();
  expect(await uris()).toEqual([MINE]);
  expect(await begin(context).uris()).toEqual([MINE]);
  await learn([AGENTS]);
  expect(await uris()).toEqual([AGENTS]);
});

test("a message with the user's files teaches nothing", async () => {
  const { uris, learn, changed } = begin();
  await learn([MINE], false);
  expect([await uris(), changed.mock.calls.length]).toEqual([[AGENTS], 0]);
});

test("files are looked for again when a setting of VS Code changes", async () => {
  const { uris, changed } = begin();
  expect(await uris()).toEqual([AGENTS]);
  there = false;
  expect(await uris()).toEqual([AGENTS]);
  events.configuration.fire({ affectsConfiguration: (section: string) => section === "chat" });
  expect([await uris(), changed.mock.calls.length]).toEqual([[], 1]);
});

test("tools that the setting names are sent with every message; those of a model that can call none are not", async () => {
  const tool = { name: "jira_read", description: "Reads.", inputSchema: undefined };
  const definition = { name: "jira_read", description: "Reads.", inputSchema: { type: "object", properties: {} } };
  lm.tools = [tool, { ...tool, name: "deploy" }];
  const { made, changed } = begin();
  expect((await made.params()).turnTools).toBeUndefined();
  mock.settings.set("nexus.chat.tools", ["jira_*"]);
  events.configuration.fire({ affectsConfiguration: (section: string) => section === "nexus.chat.tools" });
  expect([(await made.params()).turnTools, changed.mock.calls.length]).toEqual([[definition], 1]);
  lm.models = [MODEL];
  expect((await begin().made.params()).turnTools).toBeUndefined();
});
