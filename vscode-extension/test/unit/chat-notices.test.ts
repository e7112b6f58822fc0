import { beforeEach, describe, expect, it, vi } from "vitest";
import { NexusError } from "../../src/nexus";
import { RECEIPT } from "./chat-daemon";
import { Desk } from "./chat-desk";
import * as mock from "./vscode";

const COMPACTED = {
  compaction: {
    id: "c9",
    reached: true,
    receipt: { ...RECEIPT, id: "c9", replacedMessages: 20, tokensBefore: 9_000, tokensAfter: 800 },
  },
};
const SAID = "Compacted first: 20 messages became a summary by extractive, 9,000 → 800 tokens; lost: 1 path.";
const BEGINS = "> Conversation **main** begins here.";

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

describe("what Nexus says of a turn", () => {
  it("comes after the answer, its text in one run of Markdown with it, the buttons behind", async () => {
    desk.daemon.metadata = COMPACTED;
    desk.model.replies = [["Hello."]];
    const answer = await desk.thread().ask("hi");
    expect(answer.text).toBe(`Hello.\n\n${BEGINS}\n>\n> ${SAID}\n\n`);
    expect(answer.parts).toEqual(["markdown", "markdown", "button", "button", "button"]);
    expect(answer.titles()).toEqual(["Undo Compaction", "Show Receipt", "Open Context Panel"]);
  });

  it("comes where the model fails, before the buttons of the failure", async () => {
    desk.daemon.metadata = COMPACTED;
    desk.model.replies = [[new mock.LanguageModelError("too long: exceeds the limit of tokens")]];
    const error = new NexusError("All messages are new.", "nothing-to-compact");
    desk.daemon.failures.push({ method: "nexus/session/compact", error });
    const answer = await desk.thread().ask("hi");
    expect(answer.text).toBe(`\n\n${BEGINS}\n>\n> ${SAID}\n\n`);
    expect(answer.titles()).toEqual([
      "Undo Compaction",
      "Show Receipt",
      "Open Context Panel",
      "Compact",
      "Open Context Panel",
    ]);
    expect(answer.result.errorDetails?.message).toContain("The context is too long for Fake");
  });

  it("comes where the daemon refuses the turn", async () => {
    const error = new NexusError("It does not fit.", "context-overflow");
    desk.daemon.failures.push({ method: "nexus/context/assemble", error });
    const answer = await desk.thread().ask("hi");
    expect(answer.text).toBe(`\n\n${BEGINS}\n\n`);
    expect(answer.result.errorDetails?.message).toContain("It does not fit.");
  });

  it("is a message of the window where the user cancels, with the same buttons; the place waits for the next answer", async () => {
    const source = new mock.CancellationTokenSource();
    const thread = desk.thread();
    desk.daemon.metadata = COMPACTED;
    desk.model.replies = [["Half", () => source.cancel(), "."], ["Whole."]];
    mock.mock.answers.push("Undo Compaction");
    const cancelled = await thread.ask("one", { source });
    expect([cancelled.text, cancelled.titles()]).toEqual(["Half", []]);
    await vi.waitFor(() => expect(desk.daemon.paramsOf("nexus/session/undoCompaction")).toHaveLength(1));
    expect(mock.mock.messages.slice(0, 1)).toEqual([
      { level: "info", text: SAID, items: ["Undo Compaction", "Show Receipt", "Open Context Panel"] },
    ]);
    desk.daemon.metadata = {};
    expect((await thread.ask("two")).text).toBe(`Whole.\n\n${BEGINS}\n\n`);
    expect((await thread.ask("three")).text).toBe("ok");
  });

  it("stands beside a fence that the model left open, not in it", async () => {
    desk.model.replies = [["```py\nx = 1"]];
    const answer = await desk.thread().ask("hi");
    // VS Code joins only parts of one kind
    expect(answer.markdowns).toEqual([
      "```py\nx = 1",
      expect.objectContaining({ value: `\n\n${BEGINS}\n\n`, supportThemeIcons: true }),
    ]);
  });

  it("offers each button once", async () => {
    desk.daemon.begin("main");
    desk.focus.session = "main";
    desk.daemon.metadata = { compaction: { reached: false, problem: "No gain." } };
    const answer = await desk.thread().ask("hi");
    expect(answer.titles()).toEqual([...new Set(answer.titles())]);
    expect(answer.titles()).toContain("Compact");
  });

  it("names a fork that another window made necessary", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    const elsewhere = () => desk.daemon.sessions.get("main")?.turns.push({ id: "elsewhere", messages: [], key: "" });
    desk.model.replies = [["Two.", elsewhere]];
    const answer = await thread.ask("two");
    const fork = desk.focus.session;
    expect(answer.text.replaceAll("\\", "")).toBe(
      `Two.\n\n> The conversation went on elsewhere meanwhile: this turn is in **${fork}**, a fork of **main**.\n\n`,
    );
  });
});
