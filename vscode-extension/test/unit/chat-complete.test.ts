import { beforeEach, expect, it } from "vitest";
import { complete } from "../../src/chat/complete";
import { Models } from "../../src/chat/models";
import type { ModelCompleteParams } from "../../src/protocol";
import { FOLDER } from "./chat-daemon";
import { Desk, FakeModel } from "./chat-desk";
import * as mock from "./vscode";

let desk: Desk;

const PARAMS: ModelCompleteParams = {
  workspaceFolder: FOLDER,
  session: "main",
  purpose: "compaction",
  maxTokens: 2_000,
  messages: [
    { role: "system", content: "Summarize." },
    { role: "assistant", content: "I look.", toolCalls: [{ id: "a", name: "search", arguments: { q: "x" } }] },
    { role: "tool", content: "found", toolCallId: "a" },
  ],
};

beforeEach(() => {
  desk = new Desk();
  mock.lm.models = [desk.model];
});

const answered = (params = PARAMS, source = new mock.CancellationTokenSource()) =>
  desk.daemon.complete?.(params, source.token as never);

it("answers with a model that the user has allowed, calls told in words", async () => {
  desk.model.replies = [["A ", "summary."]];
  expect(await answered()).toEqual({ content: "A summary.", model: "fake-1" });
  const [request] = desk.model.requests;
  expect(request?.messages.map((one) => one.content.map((part) => (part as { value: string }).value))).toEqual([
    ["Summarize."],
    ["I look.", '[Called search with {"q":"x"}]'],
    ["[Result of call a]\nfound"],
  ]);
  expect(request?.options.tools).toBeUndefined();
});

it.each([undefined, false])("asks no model where canSendRequest says %s: no dialog", async (allowed) => {
  desk.allowed = allowed;
  await expect(answered()).rejects.toMatchObject({ code: "no-model" });
  expect(desk.model.requests).toEqual([]);
});

it("does not answer where the setting is off", async () => {
  mock.mock.settings.set("nexus.compaction.useEditorModel", false);
  await expect(answered()).rejects.toThrow("nexus.compaction.useEditorModel is off");
});

it("takes the model of a request under way, else the wanted, else the one used last", async () => {
  const models = new Models(desk.context());
  const [first, second] = [new FakeModel(), new FakeModel()].map((model, index) =>
    Object.assign(model, { id: `m${index}` }),
  );
  mock.lm.models = [first, second];
  const name = async (wanted?: string) => (await models.allowed(wanted))?.id;
  expect(await name()).toBe("m0");
  const done = models.use(second as never);
  desk.allowed = undefined;
  expect(await name()).toBe("m1");
  done();
  expect(await name()).toBeUndefined();
  desk.allowed = true;
  expect(await name()).toBe("m1");
  expect(await name("m0")).toBe("m0");
  expect(await name("unknown")).toBe("m1");
});

it("cuts at a line's end what is longer than it may be", async () => {
  const text = Array.from({ length: 40 }, (_, index) => `line ${index}`).join("\n");
  desk.model.replies = [[text]];
  const kept = (await answered({ ...PARAMS, maxTokens: 20 }))?.content ?? "";
  expect(kept.length).toBeGreaterThan(60);
  expect(kept.length).toBeLessThanOrEqual(80);
  expect(text.startsWith(`${kept}\n`)).toBe(true);
});

it("stops listening to a model that does not end", async () => {
  let pieces = 0;
  const endless = (async function* () {
    for (;;) {
      pieces++;
      yield new mock.LanguageModelTextPart("x".repeat(100));
    }
  })();
  Object.assign(desk.model, { sendRequest: async () => ({ stream: endless }) });
  const result = await answered({ ...PARAMS, maxTokens: 100 });
  expect(result?.content).toHaveLength(400);
  expect(pieces).toBeLessThan(20);
});

it("ends with the daemon's cancellation, and after its own time", async () => {
  const source = new mock.CancellationTokenSource();
  desk.model.replies = [["half", () => source.cancel(), "more"]];
  await expect(answered(PARAMS, source)).rejects.toThrow();
  desk.model.replies = [["half", () => new Promise((resolve) => setTimeout(resolve, 30)), "more"]];
  const late = complete(new Models(desk.context()), PARAMS, new mock.CancellationTokenSource().token as never, 5);
  await expect(late).rejects.toThrow("Fake did not answer within 0.005 s.");
});

it("takes an empty answer for none", async () => {
  desk.model.replies = [[" "]];
  await expect(answered()).rejects.toMatchObject({ code: "no-answer" });
});
