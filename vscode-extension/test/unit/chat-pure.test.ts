/** The parts of the chat that need no editor. */
import { describe, expect, it } from "vitest";
import { withAttachments } from "../../src/chat/attached";
import { plain } from "../../src/chat/markdown";
import { type ModelMessage, modelMessagesOf } from "../../src/chat/modelMessages";
import { freeName, titleOf } from "../../src/chat/threadSession";
import { answerOf, MOST_ROUNDS, type Piece } from "../../src/chat/toolLoop";
import type { Json } from "../../src/protocol";
import * as mock from "./vscode";

const call = (id: string, name: string, given: string) => ({
  id,
  type: "function",
  function: { name, arguments: given },
});

describe("a body for a model of the editor", () => {
  const body: Json = [
    { role: "system", content: "Rules." },
    {
      role: "user",
      content: [
        { type: "text", text: "look" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AQID" } },
      ],
    },
    { role: "assistant", content: null, tool_calls: [call("a", "search", '{"q":"x"}'), call("b", "run", "not json")] },
    { role: "tool", tool_call_id: "a", content: "found" },
    {
      role: "tool",
      tool_call_id: "b",
      content: [
        { type: "text", text: "ran" },
        { type: "text", text: "well" },
      ],
    },
    { role: "assistant", content: "" },
    { role: "assistant", content: "Done.", tool_calls: [] },
  ];

  it("has calls, results and images as parts where the model takes them", () => {
    expect(modelMessagesOf(body, { tools: true, images: true })).toEqual([
      { role: "user", parts: [{ kind: "text", text: "Rules." }] },
      {
        role: "user",
        parts: [
          { kind: "text", text: "look" },
          { kind: "image", mimeType: "image/png", base64: "AQID" },
        ],
      },
      {
        role: "assistant",
        parts: [
          { kind: "call", id: "a", name: "search", input: { q: "x" } },
          { kind: "call", id: "b", name: "run", input: { value: "not json" } },
        ],
      },
      {
        role: "user",
        parts: [
          { kind: "result", id: "a", text: "found" },
          { kind: "result", id: "b", text: "ran\nwell" },
        ],
      },
      { role: "assistant", parts: [{ kind: "text", text: "Done." }] },
    ] satisfies ModelMessage[]);
  });

  it("has them in words where it does not", () => {
    const texts = modelMessagesOf(body, { tools: false, images: false }).map((one) =>
      one.parts.map((part) => (part.kind === "text" ? part.text : `?${part.kind}`)),
    );
    expect(texts).toEqual([
      ["Rules."],
      ["look", "[Left out: an image (image/png)]"],
      ['[Called search with {"q":"x"}]', '[Called run with {"value":"not json"}]'],
      ["[Result of call a]\nfound"],
      ["[Result of call b]\nran\nwell"],
      ["Done."],
    ]);
  });

  it("is empty where there is none, and skips what is no message", () => {
    expect(modelMessagesOf(undefined, { tools: true, images: true })).toEqual([]);
    expect(modelMessagesOf(["x", 1, null, { role: "user", content: null }], { tools: true, images: true })).toEqual([]);
  });
});

describe("an answer", () => {
  const tool = { name: "look", description: "", inputSchema: {} };
  const calling = (pieces: Piece[]) => ({
    send: () =>
      (async function* () {
        yield* pieces;
      })(),
  });
  const question = { messages: [], tools: [tool], run: async () => "seen", show: () => undefined };
  const token = new mock.CancellationTokenSource().token as never;

  it("ends a model that only calls, with a result for every call", async () => {
    const answer = await answerOf(calling([{ kind: "call", id: "a", name: "look", input: {} }]), question, token);
    expect(answer.end).toBe("failed");
    expect(answer.messages.map((one) => one.role)).toEqual(
      Array.from({ length: MOST_ROUNDS }, () => ["assistant", "tool"]).flat(),
    );
    expect(answer.messages.at(-1)).toMatchObject({
      content: "Not run: this turn has had all the calls that it may have.",
      meta: { partial: true },
    });
  });

  it("does not listen to a model that goes on after the user cancelled", async () => {
    const source = new mock.CancellationTokenSource();
    const model = {
      async *send(): AsyncGenerator<Piece> {
        yield { kind: "text", text: "Half" };
        source.cancel();
        yield { kind: "text", text: " and more" };
      },
    };
    const shown: string[] = [];
    const answer = await answerOf(model, { ...question, show: (text) => shown.push(text) }, source.token as never);
    expect(answer).toEqual({
      end: "cancelled",
      messages: [{ role: "assistant", content: "Half", meta: { partial: true, reason: "cancelled" } }],
    });
    expect(shown).toEqual(["Half"]);
  });

  it("tells the model of a tool that it was not offered, and of a call that failed", async () => {
    const rounds: Piece[][] = [
      [
        { kind: "call", id: "a", name: "rm", input: {} },
        { kind: "call", id: "b", name: "look", input: {} },
      ],
      [{ kind: "text", text: "I see." }],
    ];
    const model = {
      send: () =>
        (async function* () {
          yield* rounds.shift() ?? [];
        })(),
    };
    const failing = { ...question, run: async () => Promise.reject(new Error("limit must be 1 to 50")) };
    const answer = await answerOf(model, failing, token);
    expect(answer.end).toBe("whole");
    expect(answer.messages.map((one) => one.content)).toEqual([
      null,
      "There is no tool rm. Offered: look.",
      "The call failed: limit must be 1 to 50.",
      "I see.",
    ]);
  });
});

describe("attachments", () => {
  it("are fenced by more backticks than they hold", () => {
    const put = withAttachments("why?", [{ title: "a`b.md", language: "", text: "x\n````\ny\n" }], 1000);
    expect(put).toEqual({ text: "`a'b.md`:\n\n`````\nx\n````\ny\n`````\n\nwhy?", cut: [] });
  });

  it("never take more room than there is, and say what was cut", () => {
    const long = { language: "", text: "0123456789\n".repeat(100) };
    for (const room of [0, 100, 250, 1100, 1500, 5000]) {
      const put = withAttachments(
        "?",
        [
          { title: "a", ...long },
          { title: "b", ...long },
        ],
        room,
      );
      const digits = [...put.text.matchAll(/\d{10}/gu)].length * 11;
      expect(digits).toBeLessThanOrEqual(room);
      expect(put.cut).toEqual(["a", "b"].slice(room >= 2200 ? 2 : room >= 1100 ? 1 : 0));
      expect(put.text.endsWith("?")).toBe(true);
    }
  });
});

describe("names", () => {
  it.each([
    ["Why does the login fail?", "Why does the login fail"],
    ["  two\nlines\tand\u0007 a bell ", "two lines and a bell"],
    ["𝕩".repeat(300), "𝕩".repeat(40)],
    ["…", "chat"],
    ["", "chat"],
  ])("of %j are %j", (prompt, title) => {
    expect(titleOf(prompt)).toBe(title);
  });

  it("are free", () => {
    expect(freeName("main", [])).toBe("main");
    expect(freeName("main", ["main", "main (2)"])).toBe("main (3)");
  });

  it("are plain text in Markdown", () => {
    expect(plain("a [x](command:y) <b> `c`\n| d")).toBe("a \\[x\\]\\(command:y\\) \\<b\\> \\`c\\` \\| d");
  });
});
