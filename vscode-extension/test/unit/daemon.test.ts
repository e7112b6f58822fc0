import { beforeEach, expect, test, vi } from "vitest";
import { CancellationTokenSource } from "vscode";
import type { NexusError, ServerState } from "../../src/nexus";
import { backoff } from "../../src/server/backoff";
import type { ConnectOptions } from "../../src/server/connection";
import { Daemon, type DaemonParts } from "../../src/server/daemon";
import { SetupError } from "../../src/server/remedies";

const LAUNCH = { command: "/bin/nexus", prefix: [], isShared: true, from: "path", version: [0, 1, 0] } as const;

type Hooks = Pick<ConnectOptions, "notified" | "asked" | "ended">;

let opened: Hooks[];
let stopped: number;
/** What happened, in order: a server of the window begins and ends, the daemon of all windows ends. */
let order: ("open" | "close" | "stop")[];
let answer: (method: string) => unknown;
let said: string[];
let states: ServerState[];

beforeEach(() => {
  vi.useFakeTimers();
  [opened, stopped, order, said, states] = [[], 0, [], [], []];
  answer = (method) => ({ method });
  return () => vi.useRealTimers();
});

function daemon(parts: Partial<DaemonParts> = {}): Daemon {
  const made = new Daemon({
    find: async () => LAUNCH,
    connect: async (_launch, hooks) => {
      opened.push(hooks);
      order.push("open");
      return {
        request: async (method) => answer(method),
        stop: async () => {
          stopped++;
          order.push("close");
        },
      };
    },
    stopShared: async () => void order.push("stop"),
    backoff: backoff(() => Date.now()),
    log: () => undefined,
    failed: (message, remedies) => said.push([message, ...remedies].join(" | ")),
    ...parts,
  });
  made.onDidChangeState((state) => states.push(state));
  return made;
}

test("it is found, started and asked; a second start joins the first", async () => {
  const nexus = daemon();
  const [first, second] = [nexus.start(), nexus.start()];
  expect(first).toBe(second);
  await first;
  expect(states).toEqual(["finding", "starting", "ready"]);
  expect(await nexus.request("nexus/status", {})).toEqual({ method: "nexus/status" });
  expect(opened).toHaveLength(1);
});

test("a request starts a server that was stopped, and waits for it", async () => {
  const nexus = daemon();
  expect(await nexus.request("nexus/status", {})).toEqual({ method: "nexus/status" });
});

test("who does not want to wait any more is let go", async () => {
  const nexus = daemon({ find: () => new Promise(() => undefined) });
  const source = new CancellationTokenSource();
  const asked = nexus.request("nexus/status", {}, source.token);
  source.cancel();
  await expect(asked).rejects.toMatchObject({ code: "cancelled" });
});

test("a server that ends comes back after a while, and says so meanwhile", async () => {
  const nexus = daemon();
  await nexus.start();
  opened[0]?.ended();
  expect([nexus.state, nexus.detail]).toEqual(["starting", "The server has ended; it is started again in 1 s"]);
  const asked = nexus.request("nexus/status", {});
  await vi.advanceTimersByTimeAsync(999);
  expect(opened).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2);
  expect(nexus.state).toBe("ready");
  expect(opened).toHaveLength(2);
  await expect(asked).resolves.toBeDefined();
  opened[0]?.ended();
  expect(nexus.state).toBe("ready");
});

test("one that ends again and again is given up, until somebody asks", async () => {
  const nexus = daemon();
  await nexus.start();
  for (let i = 0; i < 8; i++) {
    opened.at(-1)?.ended();
    await vi.advanceTimersByTimeAsync(31_000);
  }
  expect(nexus.state).toBe("failed");
  expect(said).toEqual([expect.stringMatching(/ended again and again.* \| restart \| output/)]);
  await expect(nexus.request("nexus/status", {})).rejects.toMatchObject({ code: "not-ready" });
  await nexus.restart();
  expect(nexus.state).toBe("ready");
});

test("why there is no server is said once, with its own remedies", async () => {
  const nexus = daemon({
    find: async () => {
      throw new SetupError("no-python", "No Python.", "getPython", "tryAgain");
    },
  });
  await nexus.start();
  expect([nexus.state, nexus.detail, said]).toEqual(["failed", "No Python.", ["No Python. | getPython | tryAgain"]]);
  expect(nexus.obstacle).toMatchObject({ kind: "no-python", remedies: ["getPython", "tryAgain"] });
  await expect(nexus.request("nexus/status", {})).rejects.toMatchObject({
    code: "not-ready",
    message: "No Python.",
    remedies: ["getPython", "tryAgain"],
  });
});

test("what is no failure is not said, only shown", async () => {
  const nexus = daemon({
    find: async () => {
      throw new SetupError("not-trusted", "Not trusted.", "manageTrust");
    },
  });
  await expect(nexus.request("nexus/status", {})).rejects.toMatchObject({ code: "not-ready", message: "Not trusted." });
  expect([nexus.state, said]).toEqual(["stopped", []]);
  expect(nexus.obstacle).toMatchObject({ kind: "not-trusted", remedies: ["manageTrust"] });
});

test("a server that dies at once is said with its reason; a start that works takes the obstacle away", async () => {
  let dies = true;
  const connect: DaemonParts["connect"] = async () => {
    if (dies) throw new Error("The server ended at once: ImportError.");
    return { request: async () => ({}), stop: async () => undefined };
  };
  const nexus = daemon({ connect });
  await nexus.start();
  expect([nexus.state, nexus.detail]).toEqual(["failed", "The server ended at once: ImportError."]);
  expect(said).toEqual(["Nexus could not start. The server ended at once: ImportError. | restart | output"]);
  expect(nexus.obstacle).toEqual({ kind: "start-failed", remedies: ["restart", "output"] });
  dies = false;
  await nexus.restart();
  expect([nexus.state, nexus.obstacle]).toEqual(["ready", undefined]);
});

test("a stop while it is on its way ends what comes later", async () => {
  let open: (() => void) | undefined;
  const nexus = daemon({
    connect: (_launch, hooks) =>
      new Promise((resolve) => {
        open = () => {
          opened.push(hooks);
          resolve({ request: async () => undefined, stop: async () => void stopped++ });
        };
      }),
  });
  const started = nexus.start();
  await vi.advanceTimersByTimeAsync(0);
  await nexus.stop();
  open?.();
  await started;
  expect([nexus.state, stopped]).toEqual(["stopped", 1]);
});

test("a stop cancels the start that was to come", async () => {
  const nexus = daemon();
  await nexus.start();
  opened[0]?.ended();
  await nexus.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([nexus.state, opened.length]).toEqual(["stopped", 1]);
});

test.each([
  [{ code: -32803, message: "No such turn.", data: { code: "unknown-turn" } }, "unknown-turn", "No such turn."],
  [{ code: -32800, message: "x" }, "cancelled", "Cancelled."],
  [{ code: -32601, message: "x" }, "method-not-found", /does not know nexus\/status.*Update/],
  [new Error("odd"), "failed", "odd"],
])("the refusal %j has the code %s", async (error, code, message) => {
  const nexus = daemon();
  await nexus.start();
  answer = () => Promise.reject(error);
  const refused = (await nexus.request("nexus/status", {}).catch((one: unknown) => one)) as NexusError;
  expect(refused.code).toBe(code);
  expect(refused.message).toMatch(message);
});

test("a restart is on its way from the beginning: nobody takes it for a server that was stopped", async () => {
  const nexus = daemon();
  await nexus.start();
  states.length = 0;
  const restarted = nexus.restart();
  const [state, detail] = [nexus.state, nexus.detail];
  const asked = nexus.request("nexus/status", {}); // waits for the next one
  await restarted;
  expect([state, detail]).toEqual(["finding", "Restarting the server"]);
  expect(states).toEqual(["finding", "finding", "starting", "starting", "ready"]);
  await expect(asked).resolves.toEqual({ method: "nexus/status" });
  expect([opened.length, stopped]).toEqual([2, 1]);
});

test("a restart ends the daemon of all windows between two servers of this one", async () => {
  const nexus = daemon();
  await nexus.start();
  await nexus.restart();
  expect(order).toEqual(["open", "close", "stop", "open"]);
});

test("a restart for this window alone leaves the daemon of all windows as it is", async () => {
  const nexus = daemon();
  await nexus.start();
  await nexus.restartWindow();
  expect([nexus.state, order]).toEqual(["ready", ["open", "close", "open"]]);
});

test("a restart of a server for one window ends no daemon of others", async () => {
  const nexus = daemon({ find: async () => ({ ...LAUNCH, isShared: false }) });
  await nexus.start();
  await nexus.restart();
  expect(order).toEqual(["open", "close", "open"]);
});

test("who starts a server that was stopped takes the daemon as it is", async () => {
  const nexus = daemon();
  await nexus.restart();
  await nexus.stop();
  await nexus.restart();
  expect(order).toEqual(["open", "close", "open"]);
});

test("a restart of what failed ends the daemon once, however often it fails on its way there", async () => {
  let isThere = false;
  const nexus = daemon({
    find: async () => {
      if (!isThere) throw new SetupError("no-python", "No Python.");
      return LAUNCH;
    },
  });
  await nexus.start();
  await nexus.restart();
  isThere = true;
  await nexus.restart();
  opened[0]?.ended();
  await vi.advanceTimersByTimeAsync(2_000);
  expect([nexus.state, order]).toEqual(["ready", ["stop", "open", "open"]]);
});

test("a restart that is stopped while the daemon ends starts nothing", async () => {
  let end: (() => void) | undefined;
  const nexus = daemon({
    stopShared: () =>
      new Promise((resolve) => {
        end = resolve;
      }),
  });
  await nexus.start();
  const restarted = nexus.restart();
  await vi.advanceTimersByTimeAsync(0);
  await nexus.stop();
  end?.();
  await restarted;
  expect([nexus.state, order]).toEqual(["stopped", ["open", "close"]]);
});

test("a restart that is stopped meanwhile starts nothing", async () => {
  const nexus = daemon();
  await nexus.start();
  const restarted = nexus.restart();
  await nexus.stop();
  await restarted;
  expect([nexus.state, opened.length]).toEqual(["stopped", 1]);
});

test("lenses are asked for as any client asks, and who listens hears when they are old", async () => {
  const nexus = daemon();
  await nexus.start();
  const { token } = new CancellationTokenSource();
  answer = (method) => (method === "textDocument/codeLens" ? null : { method });
  expect(await nexus.lenses("file:///w/NEXUS.md", token)).toEqual([]);
  let old = 0;
  nexus.onDidChangeLenses(() => old++);
  opened[0]?.notified("workspace/codeLens/refresh", undefined);
  expect(old).toBe(1);
});

test("notifications reach who listens", async () => {
  const nexus = daemon();
  await nexus.start();
  const heard: unknown[] = [];
  nexus.onDidChangeContext((change) => heard.push(change));
  nexus.onDidChangeSession((change) => heard.push(change));
  nexus.onDidChangeAgent((change) => heard.push(change.agentId));
  opened[0]?.notified("nexus/context/didChange", { revision: 1 });
  opened[0]?.notified("nexus/session/didChange", { session: "main" });
  opened[0]?.notified("nexus/agent/didChange", { agentId: "reviewer" });
  expect(heard).toEqual([{ revision: 1 }, { session: "main" }, "reviewer"]);
});

test("a question is asked of whoever answers last, and of nobody afterwards", async () => {
  const nexus = daemon();
  await nexus.start();
  const params = { workspaceFolder: "file:///w", session: "main", purpose: "compaction", maxTokens: 9, messages: [] };
  const ask = () => opened[0]?.asked("nexus/model/complete", params, new CancellationTokenSource().token);
  await expect(ask()).rejects.toThrow(/nothing in this editor answers/);
  const first = nexus.answer("nexus/model/complete", async () => ({ content: "1" }));
  const second = nexus.answer("nexus/model/complete", async () => ({ content: "2" }));
  nexus.answer("nexus/tool/approve", async () => ({ approved: true }));
  first.dispose();
  expect(await ask()).toEqual({ content: "2" });
  second.dispose();
  await expect(ask()).rejects.toThrow(/nothing in this editor answers/);
});
