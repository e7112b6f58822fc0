/** The picked model: before the first turn, after a reload, in two windows, one denominator everywhere. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { plain, type Workbench } from "./harness/workbench.ts";

/** 60,000 tokens: much of any window here. */
const LONG = "Always write the tests first.\n".repeat(10_000);
const SMALL = "Wren";

let folder: string;
let bench: Workbench;
let second: Workbench;
let other: Daemon;

interface Shown {
  model: string;
  of: string;
  percent: string;
  lens: string;
  problem: string;
}

beforeAll(
  prepared(async () => {
    folder = path.join(world().root, "workspaces/model");
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, "AGENTS.md"), LONG);
    writeSettings({ name: "editor", model: null }); // the user's own settings name another provider
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
    await bench.ready();
    await bench.openPanel();
  }),
);
afterAll(async () => {
  await other?.stop();
  await second?.close();
  await bench?.close();
});
beforeEach(photographFailure);

test("before anything is picked, the window is a guess, and the panel offers to pick", async () => {
  await shows(bench, {
    model: "no model yet",
    of: "of 126,000 tokens",
    lens: "of ≈ 126k",
    problem: "the 126,000",
  });
  await bench.webview().locator(".remark-action button", { hasText: "Pick Model" }).waitFor();
});

test("a picked model counts everywhere before the first turn", async () => {
  await bench.webview().locator(".place .model").click();
  await bench.choose(SMALL);
  await shows(bench, WREN);
  const usage = await until(
    () => other.request("nexus/context/usage", { workspaceFolder: uriOf(folder) }),
    ({ model }) => model !== "", // another daemon notices within a second
  );
  expect({ model: usage.model, limit: usage.limit }).toEqual({ model: "wren", limit: 90_000 });
});

test("it does after a reload of the window", async () => {
  const before = await shown(bench);
  await bench.page.reload();
  await bench.ready();
  await bench.webview().locator(".window .used").waitFor(); // the panel was open
  await shows(bench, WREN);
  await until(
    () => shown(bench),
    (after) => JSON.stringify(after) === JSON.stringify(before),
  );
});

test("another window shows the same", async () => {
  second = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
  await second.ready();
  await second.openPanel();
  await shows(second, WREN);
  await agree();
});

test("a turn with another model picks that one, in both windows", async () => {
  await bench.openChat();
  await bench.ask("is this the parrot?");
  await bench.response("You said: is this the parrot?").waitFor();
  await shows(bench, PARROT);
  await shows(second, PARROT);
  await agree();
});

test("what one window picks the other follows", async () => {
  await second.command("Nexus: Pick Model");
  await second.choose(SMALL);
  await shows(second, WREN);
  await shows(bench, WREN);
  await agree();
});

test("the conversation in focus says which model the folder shows", async () => {
  await bench.command("Nexus: New Conversation");
  await bench.answer("New Conversation", "plan");
  await until(
    () => bench.rows("Conversations"),
    (rows) => rows.some((row) => row.startsWith("plan, current")),
  );
  await bench.command("Nexus: Pick Model");
  await bench.choose("Parrot");
  await shows(bench, PARROT);
  await bench.command("Nexus: Switch Conversation");
  await bench.choose("main");
  await shows(bench, WREN);
});

test("the model of the settings takes it back", async () => {
  writeSettings({ name: "editor", model: "o3" });
  await bench.command("Nexus: Pick Model");
  await bench.choose("Model of the settings");
  await shows(bench, {
    model: "o3",
    of: "of 198,000 tokens",
    lens: "of 198k",
    problem: "the 198,000",
  });
});

test("settings that name a provider leave nothing to pick, and say so", async () => {
  writeSettings({ name: "openai", model: "o3" });
  await bench.command("Nexus: Pick Model");
  expect(await bench.told("The settings of model name the provider openai")).toContain(
    "so its model is theirs, not the editor's.",
  );
});

const WREN = { model: "wren", of: "of 88,000 tokens", lens: "of 88k", problem: "the 88,000" };
const PARROT = { model: "parrot", of: "of 198,000 tokens", lens: "of 198k", problem: "the 198,000" };

/** Until panel, lens and problem are for this model; and all shares are of the same window. */
async function shows(where: Workbench, expected: Omit<Shown, "percent">): Promise<void> {
  await until(
    () => shown(where),
    ({ percent: _, ...seen }) => JSON.stringify(seen) === JSON.stringify(expected),
  );
}

/** Until both windows show the same, to the percent: what is written elsewhere is noticed within a second. */
async function agree(): Promise<void> {
  await until(
    async () => [await shown(bench), await shown(second)],
    ([one, two]) => JSON.stringify(one) === JSON.stringify(two),
  );
}

async function shown(where: Workbench): Promise<Shown> {
  const text = async (selector: string) => (await where.webview().locator(selector).textContent()) ?? "";
  const lens = where.page.locator(".part.editor .codelens-decoration").first();
  const problem = (await where.problems("AGENTS.md takes")).first();
  return {
    model: await text(".place .model"),
    of: await text(".place .of"),
    lens: /Nexus: [^|]*?(of (?:≈ )?[\d.]+k)/.exec(plain(await lens.innerText()))?.[1] ?? "",
    problem: /the [\d,]+(?= that a request may take)/.exec((await problem.getAttribute("aria-label")) ?? "")?.[0] ?? "",
    percent: await text(".figures .percent"),
  };
}

function writeSettings(provider: object): void {
  mkdirSync(path.join(folder, ".nexus3"), { recursive: true });
  writeFileSync(path.join(folder, ".nexus3/config.json"), JSON.stringify({ provider }));
}
