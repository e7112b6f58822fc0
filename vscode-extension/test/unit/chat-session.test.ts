import { beforeEach, describe, expect, it, vi } from "vitest";
import { NexusError } from "../../src/nexus";
import { OTHER } from "./chat-daemon";
import { Desk } from "./chat-desk";
import * as mock from "./vscode";

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

describe("the ledger", () => {
  it("adds a turn once, though the reply of its append was lost", async () => {
    vi.useFakeTimers();
    desk.daemon.failures.push({ method: "nexus/session/append", error: new Error("connection closed"), after: true });
    const asking = desk.thread().ask("hi");
    await vi.advanceTimersByTimeAsync(1000);
    vi.useRealTimers();
    const answer = await asking;
    const keys = desk.daemon.paramsOf("nexus/session/append").map((params) => params.idempotencyKey);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(desk.daemon.sessions.get("main")?.turns).toHaveLength(1);
    expect(answer.titles()).not.toContain("Record Again");
  });

  it("keeps a turn that could not be written, and writes it before the next", async () => {
    const thread = desk.thread();
    desk.daemon.failures.push({
      method: "nexus/session/append",
      error: new NexusError("No room left.", "ledger-full"),
    });
    const answer = await thread.ask("one");
    expect(answer.text).toContain("**This turn is not in the ledger yet.** No room left.");
    expect(answer.titles()).toEqual(["Record Again"]);
    await thread.ask("two");
    expect(desk.daemon.said("main").map((one) => one.content)).toEqual(["one", "ok", "two", "ok"]);
    await desk.press(answer.buttons[0]);
    expect(mock.mock.messages.at(-1)?.text).toBe("The turn is in the ledger already.");
  });

  it("goes on in the fork where another window went on meanwhile", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.model.replies = [
      ["two", () => desk.daemon.sessions.get("main")?.turns.push({ id: "elsewhere", messages: [], key: "" })],
    ];
    const answer = await thread.ask("two?");
    expect(answer.text).toContain("this turn is in **main \\(2\\)**, a fork of **main**");
    expect(desk.focus.session).toBe("main (2)");
    await thread.ask("three?");
    expect(desk.daemon.said("main (2)").map((one) => one.content)).toEqual([
      "one",
      "ok",
      "two?",
      "two",
      "three?",
      "ok",
    ]);
  });
});

describe("which session a chat thread is in", () => {
  const names = () => [...desk.daemon.sessions].map(([name, one]) => [name, one.turns.length]);

  it("goes on in the most recent conversation where the user picked it for a new chat", async () => {
    await desk.thread().ask("one");
    desk.focus.pickSession("main");
    const second = desk.thread();
    const answer = await second.ask("two");
    expect(names()).toEqual([["main", 2]]);
    expect(answer.text).toContain("> Goes on in conversation **main** (1 turn).");
    await second.ask("three");
    await desk.thread().ask("four"); // picked once is not picked for ever
    expect(names()).toEqual([
      ["main", 3],
      ["four", 1],
    ]);
  });

  it("begins a session of its own for a second thread, and offers the other", async () => {
    await desk.thread().ask("one");
    const second = desk.thread();
    const answer = await second.ask("Why does the login fail on Mondays, of all days?");
    expect(names()).toEqual([
      ["main", 1],
      ["Why does the login fail on Mondays, of", 1],
    ]);
    expect(desk.focus.session).toBe("Why does the login fail on Mondays, of");
    expect(answer.titles()).toEqual(["Go On in main Instead"]);
    await desk.press(answer.buttons[0]);
    expect((await second.ask("two")).text).toContain(
      "> Goes on in conversation **main** (1 turn), which you switched to.",
    );
    expect(names()[0]).toEqual(["main", 2]);
  });

  it("takes the session that the user has chosen for a new thread, and says how long it is", async () => {
    desk.daemon.begin("plan", [[], []]);
    await desk.thread().ask("one");
    desk.focus.setSession("plan");
    const answer = await desk.thread().ask("two");
    expect(answer.text).toContain("> Goes on in conversation **plan** (2 turns).");
    expect(answer.titles()).toEqual(["New Conversation"]);
  });

  it("keeps a thread that is opened again where it was, and the focus follows", async () => {
    const first = desk.thread();
    await first.ask("one");
    await desk.thread().ask("other");
    const answer = await first.ask("two");
    expect(answer.text).toBe("ok");
    expect(names()[0]).toEqual(["main", 2]);
    expect(desk.focus.session).toBe("main");
  });

  it("knows a thread after the window was reloaded, and after its session was renamed", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.open();
    const session = desk.daemon.sessions.get("main");
    desk.daemon.sessions.delete("main");
    desk.daemon.sessions.set("renamed", session ?? desk.daemon.begin("x"));
    desk.focus.setSession("renamed");
    expect((await thread.ask("two")).text).toBe("ok");
    expect(names()).toEqual([["renamed", 2]]);
  });

  it("says that a session was deleted or cleared", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.daemon.sessions.clear();
    expect((await thread.ask("two")).text).toContain("Conversation **main** was deleted");
    desk.daemon.begin("main");
    expect((await thread.ask("three")).text).toContain("Conversation **main** was cleared");
  });

  it("does not go on in main because the thread's session was deleted", async () => {
    desk.daemon.begin("plan");
    desk.focus.setSession("plan");
    const thread = desk.thread();
    await thread.ask("one");
    desk.daemon.begin("main", [[]]);
    desk.daemon.sessions.delete("plan");
    desk.focus.setSession("main");
    expect((await thread.ask("two")).text).toContain("Conversation **plan** was deleted");
    expect(names()).toEqual([
      ["main", 1],
      ["plan", 1],
    ]);
  });

  it("goes on in a fork where a turn was taken back: the model does not see it, nothing is lost", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    await thread.ask("two");
    thread.back();
    desk.model.replies = [["new"]];
    const answer = await thread.ask("two, better");
    expect(answer.text).toContain("You went back, so this goes on in **main \\(2\\)**, a fork.");
    expect(desk.sent()?.flat()).not.toContain("two");
    expect(desk.daemon.said("main").map((one) => one.content)).toEqual(["one", "ok", "two", "ok"]);
    expect(desk.daemon.said("main (2)").map((one) => one.content)).toEqual(["one", "ok", "two, better", "new"]);
    expect((await thread.ask("three")).text).toBe("ok");
  });

  it("begins anew where the first turn was taken back", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    thread.back();
    await thread.ask("one, better");
    expect(names()).toEqual([
      ["main", 1],
      ["one, better", 1],
    ]);
  });

  it("stays in its folder though the editor shows another one, and says so", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.focus.setFolder(mock.Uri.parse(OTHER) as never);
    desk.focus.session = "elsewhere";
    const answer = await thread.ask("two");
    expect(answer.text).toBe("ok\n\n> Folder **ws**.\n\n");
    expect(names()).toEqual([["main", 2]]);
    expect(desk.focus.session).toBe("elsewhere");
  });

  it("talks to the agent in focus, in its session, and leaves the thread where it is", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.daemon.begin("agent:auth");
    desk.daemon.agents = [
      { agentId: "auth", session: "agent:auth", cwd: "/ws", role: "worker", depth: 1, usage: {} as never },
    ];
    desk.focus.setAgent("auth");
    const answer = await thread.ask("fix it");
    expect(answer.text).toBe("ok\n\n> Agent **auth**, in its conversation **agent:auth**.\n\n");
    expect(desk.daemon.paramsOf("nexus/context/assemble").at(-1)).toMatchObject({
      agent: "auth",
      session: "agent:auth",
    });
    desk.daemon.agents = [];
    await thread.ask("two");
    expect(desk.focus.agent).toBeUndefined();
    expect(names()).toEqual([
      ["main", 2],
      ["agent:auth", 1],
    ]);
  });
});
