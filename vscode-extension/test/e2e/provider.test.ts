/** A folder whose settings name a provider: @nexus asks its model, and the daemon runs what the user allows. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ledger } from "./harness/daemon.ts";
import { heard, photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { Provider } from "./harness/provider.ts";
import type { Workbench } from "./harness/workbench.ts";

const READ = "mcp__files__read_text_file";

let folder: string;
let bench: Workbench;
let provider: Provider;
/** The user's own settings, as they were. */
let settings: string;

beforeAll(
  prepared(async () => {
    folder = path.join(world().root, "workspaces/provider");
    mkdirSync(path.join(folder, ".nexus3"), { recursive: true });
    writeFileSync(path.join(folder, "AGENTS.md"), "# Agents\n\nBe kind.\n");
    writeFileSync(path.join(folder, "hello.txt"), "The gate closes at six.\n");
    const files = { command: "node", args: [world().mcpServer, folder] };
    writeFileSync(path.join(folder, ".nexus3/mcp.json"), JSON.stringify({ mcpServers: { files } }));
    provider = await Provider.start();
    settings = readFileSync(settingsFile(), "utf8");
    const named = { name: "anthropic", model: "claude-sonnet-4-6", base_url: provider.url };
    writeFileSync(
      settingsFile(),
      JSON.stringify({ ...JSON.parse(settings), provider: { ...named, api_key_env: "NEXUS_E2E_KEY" } }),
    );
    bench = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
    await bench.ready();
    await bench.command("Nexus: Approve MCP Server…");
    await bench.choose("files");
    await bench.dialog("Start the MCP server files?", "Approve and Start");
    await bench.told("The MCP server files is ready: ");
    await bench.openChat();
  }),
);
afterAll(async () => {
  if (settings !== undefined) writeFileSync(settingsFile(), settings);
  provider?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("the provider's model answers, after a call that the user allows, and the turn is in what the next one costs", async () => {
  const before = await bench.ready();
  const input = { path: path.join(folder, "hello.txt") };
  provider.answers = [["I look. ", { tool: READ, input }], ["At six."]];
  await bench.ask("When does the gate close?");
  const text = await bench.answerTool("call read_text_file of the MCP server files?", "Allow");
  expect(text).toContain("hello.txt");
  await bench.response("At six.").waitFor();
  await bench.response("2 requests to claude-sonnet-4-6: 240 tokens, $0.0012.").waitFor();
  expect(JSON.stringify(provider.requests[1]?.messages)).toContain("The gate closes at six.");
  expect(
    heard().filter(({ messages }) => JSON.stringify(messages ?? []).includes("When does the gate close?")),
  ).toEqual([]);
  expect(await written()).toEqual(["user", "assistant", "tool", "assistant"]);
  await until(
    () => bench.ready(),
    (label) => label !== before,
  );
  await bench.openPanel();
  await bench.unfold("What Costs What");
  await until(
    () => bench.rows("What Costs What"),
    (rows) => rows.some((label) => /^\d messages, ≈ \d+ tokens/.test(label)),
  );
});

test("a call that the user does not allow is not made", async () => {
  provider.answers = [[{ tool: READ, input: { path: path.join(folder, "none.txt") } }], ["Then not."]];
  await bench.ask("And the other file?");
  await bench.answerTool("none.txt", "Don't Allow");
  await bench.response("Then not.").waitFor();
  expect(JSON.stringify(provider.requests.at(-1)?.messages)).toContain("The user did not allow this call.");
});

test("a turn that is cancelled keeps what came, and the conversation goes on", async () => {
  provider.answers = [["Half an answer", "endless"], ["Whole."]];
  await bench.ask("Count.");
  await bench.response("Half an answer").waitFor();
  await bench.page.locator(".interactive-input-part .codicon-stop-circle").first().click();
  await until(
    () => ledger(world(), folder),
    (messages) => JSON.stringify(messages.at(-1)?.content).includes("Half an answer"),
  );
  await bench.ask("Again.");
  await bench.response("Whole.").waitFor();
  expect(JSON.stringify(provider.requests.at(-1)?.messages)).toContain("Half an answer");
});

test("a question that is open when the turn is cancelled is over: its button allows nothing", async () => {
  const sent = provider.requests.length;
  provider.answers = [[{ tool: READ, input: { path: path.join(folder, "late.txt") } }], ["Never."], ["On."]];
  await bench.ask("And late?");
  const question = await bench.toolQuestion("late.txt");
  await bench.page.locator(".interactive-input-part .codicon-stop-circle").first().click();
  await question.getByRole("button", { name: "Allow", exact: true }).click();
  await bench.told("Nothing is called: nobody waits for this answer any more.");
  await until(
    () => ledger(world(), folder),
    (messages) => JSON.stringify(messages.at(-1)?.content).includes("The user cancelled before this call was run."),
  );
  expect(provider.requests.length).toBe(sent + 1);
});

function settingsFile(): string {
  return path.join(world().root, "home/.nexus3/config.json");
}

/** Who spoke in `main`, but for the message that says when it began. */
async function written(): Promise<string[]> {
  const messages = await until(
    () => ledger(world(), folder),
    (all) => all.at(-1)?.role === "assistant",
  );
  return messages.filter(({ content }) => !String(content).startsWith("[Session started")).map(({ role }) => role);
}
