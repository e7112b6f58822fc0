/**
 * A real Claude Code in a terminal of the editor, for pictures: NEXUS_E2E_CLAUDE is its command.
 *
 * Its provider is a stand-in on loopback that counts four characters as a token, and finds all but the last message in
 * its cache. It has a home of the run, whose questions at the start have been answered.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import type { World } from "./world.ts";

const KEY = "sk-ant-test-key-of-nobody-000";
const ANSWER = "A handler takes the connection that it is given, and opens none of its own (`packages/api/AGENTS.md`).";

export interface ClaudeCode {
  /** What to type into a terminal. */
  readonly commandLine: string;
  stop(): void;
}

export async function claudeCode(world: World, command: string, folder: string): Promise<ClaudeCode> {
  const home = path.join(world.root, "home");
  mkdirSync(path.join(home, ".claude"), { recursive: true });
  const state = {
    hasCompletedOnboarding: true,
    theme: "dark",
    customApiKeyResponses: { approved: [KEY.slice(-20)], rejected: [] },
    projects: {
      [folder]: {
        hasTrustDialogAccepted: true,
        hasCompletedProjectOnboarding: true,
        disabledMcpjsonServers: ["tickets", "database"],
      },
    },
  };
  writeFileSync(path.join(home, ".claude.json"), JSON.stringify(state));
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const text = Buffer.concat(pieces).toString();
      const { stream, model } = text ? (JSON.parse(text) as { stream?: boolean; model?: string }) : {};
      response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
      response.end(stream ? events(model ?? "", text.length) : JSON.stringify({ input_tokens: text.length / 4 }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const variables = {
    HOME: home,
    PATH: `${path.dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    ANTHROPIC_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ANTHROPIC_API_KEY: KEY,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    IS_SANDBOX: "1",
  };
  const words = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const start = path.join(world.root, "claude");
  writeFileSync(start, `cd '${folder}'\nclear\nexec env ${words.join(" ")} '${command}' --model claude-sonnet-4-5\n`);
  return { commandLine: `. ${start}`, stop: () => server.close() };
}

/** An answer as Anthropic streams it. */
function events(model: string, characters: number): string {
  const input = Math.round(characters / 4);
  const cached = Math.round(input * 0.93);
  const usage = { input_tokens: 12, cache_read_input_tokens: cached, cache_creation_input_tokens: input - cached - 12 };
  const message = { id: `msg_${characters}`, type: "message", role: "assistant", model, content: [] };
  const all = [
    { type: "message_start", message: { ...message, stop_reason: null, usage: { ...usage, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: ANSWER } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { ...usage, output_tokens: 31 } },
    { type: "message_stop" },
  ];
  return all.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
