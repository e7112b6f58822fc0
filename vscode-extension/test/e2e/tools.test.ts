/** What a turn of @nexus adds to the conversation: parameters of the settings, tools of the editor, the text of a skill. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Daemon, ledger, NEXT_TURN, uriOf } from "./harness/daemon.ts";
import { heard, photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { asPredicted, still } from "./harness/prediction.ts";
import type { Workbench } from "./harness/workbench.ts";

const SETTINGS = { provider: { name: "editor" }, parameters: { temperature: 0.2, max_tokens: 500 } };
const SKILL = "---\nname: greet\ndescription: Greets people. For first messages.\n---\nGreet in Latin.\n";
const WEATHER = "test_weather";

let folder: string;
let bench: Workbench;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(world().root, "workspaces/tools");
    mkdirSync(path.join(folder, ".nexus3/skills/greet"), { recursive: true });
    writeFileSync(path.join(folder, ".nexus3/config.json"), JSON.stringify(SETTINGS));
    writeFileSync(path.join(folder, ".nexus3/skills/greet/SKILL.md"), SKILL);
    writeFileSync(path.join(folder, "AGENTS.md"), "# Agents\n\nBe kind.\n");
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
    await bench.ready();
    const panel = await bench.openPanel();
    await panel.locator(".place .model").click();
    await bench.choose("Parrot");
    await panel.locator(".place .model", { hasText: "parrot" }).waitFor();
    await bench.openChat();
  }),
);
afterAll(async () => {
  bench?.offerTools([]);
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("the parameters of the settings reach the model, and no tool that the user did not choose", async () => {
  await asPredicted(bench, other, "hello");
  const { options, tools } = lastRequest();
  expect([options, tools?.includes(WEATHER)]).toEqual([{ temperature: 0.2, max_tokens: 500 }, false]);
});

test("a skill is sent with one message", async () => {
  await bench.ask("/skill greet say hello");
  await bench.response("You said: say hello").waitFor();
  const sent = lastRequest().messages ?? [];
  expect(sent.slice(1).some(({ text }) => text.includes("Greet in Latin."))).toBe(true); // the prompt stays as it was
  const { system } = await asPredicted(bench, other, "and without it");
  expect(system).not.toContain("Greet in Latin.");
  expect(system).toContain("read it with the tool `read_skill`");
});

test("a tool of the setting is part of the figure, and its call is run", async () => {
  bench.offerTools(["test_*"]);
  await bench.refresh();
  await bench.ready();
  await asPredicted(bench, other, "what can you call?");
  expect(lastRequest().tools).toContain(WEATHER);
  await bench.ask(`[[tool ${WEATHER} {"city": "Bern"}]]`);
  await bench.response("You said: Sunny in Bern").waitFor();
  const written = await until(
    () => ledger(world(), folder),
    (messages) => messages.at(-1)?.role === "assistant" && messages.some(({ role }) => role === "tool"),
  );
  expect(written.find(({ role }) => role === "tool")?.content).toBe("Sunny in Bern");
});

test("a tool that is attached to a message is offered with that message only", async () => {
  bench.offerTools([]);
  await bench.refresh();
  await bench.ready();
  await bench.ask(`#weather [[tool ${WEATHER} {"city": "Rome"}]]`);
  await bench.response("You said: Sunny in Rome").waitFor();
  const params = { workspaceFolder: uriOf(folder), session: "main", nextTurn: NEXT_TURN };
  await until(
    async () => [await still(bench), (await other.request("nexus/context/usage", params)).total],
    ([figure, total]) => figure === total,
  );
  await bench.ask("which tools are left?");
  await bench.response("You said: which tools are left?").waitFor();
  expect(lastRequest().tools).not.toContain(WEATHER);
});

function lastRequest() {
  return heard().findLast(({ event }) => event === "request") ?? expect.fail("the model was sent nothing");
}
