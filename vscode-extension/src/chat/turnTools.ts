/** Who runs a call of the model: a table of tool names. Only tools in it are offered. */
import type * as vscode from "vscode";
import type { Nexus } from "../nexus";
import type { Json, ToolCall } from "../protocol";
import { runEditorTool } from "./editorTools";
import { offeredTools } from "./lm";
import { inputOf, isRecord } from "./modelMessages";
import { callServerTool, PREFIX, SEARCH, type ServerTool, searchServerTools } from "./serverTools";
import type { ShortResult, Tool } from "./toolLoop";
import type { ToolQuestions } from "./toolQuestions";

/** What the daemon's tools need to know of the turn. */
export interface TurnScope {
  folder: string;
  session: string;
  agent?: string;
  token: vscode.CancellationToken;
  request: vscode.ChatRequest;
  questions: ToolQuestions;
}

interface DaemonTool {
  /** What the chat shows while it runs. */
  doing: string;
  run(nexus: Nexus, scope: TurnScope, call: ToolCall): Promise<string>;
}

const MEMORY: DaemonTool = { doing: "Asking memory", run: askMemory };
const SKILLS: DaemonTool = { doing: "Reading a skill", run: readSkill };
const AGENTS: DaemonTool = { doing: "Managing agents", run: callAgentTool };
const SEARCHING = "Searching the tools of MCP servers";

/** Tools that the daemon offers and runs. */
const DAEMON_TOOLS: Readonly<Record<string, DaemonTool>> = {
  query_l2_memory: MEMORY,
  query_l3_memory: MEMORY,
  query_l4_memory: MEMORY,
  read_skill: SKILLS,
  dispose_agent: AGENTS,
  list_agents: AGENTS,
  message_agent: AGENTS,
  spawn_agent: AGENTS,
};

export function isDaemonTool(name: string): boolean {
  return Object.hasOwn(DAEMON_TOOLS, name) || name === SEARCH;
}

/** What the chat shows while the daemon runs a call in a turn of its own. */
export function doingOf(name: string): string {
  if (name === SEARCH) return SEARCHING;
  return (Object.hasOwn(DAEMON_TOOLS, name) ? DAEMON_TOOLS[name]?.doing : undefined) ?? "Calling an MCP server";
}

/** Names and patterns of the daemon's tools that the user's settings do not offer. */
export function toolsNotOffered(): string[] {
  const { memoryTools, skillTools, agentTools, mcpTools } = offeredTools(undefined);
  const off = [...(memoryTools ? [] : [MEMORY]), ...(skillTools ? [] : [SKILLS]), ...(agentTools ? [] : [AGENTS])];
  const names = Object.entries(DAEMON_TOOLS).flatMap(([name, tool]) => (off.includes(tool) ? [name] : []));
  return [...names, ...(mcpTools ? [] : [`${PREFIX}*`, SEARCH])];
}

export interface Runner {
  doing: string;
  run(call: ToolCall): Promise<string | ShortResult>;
}

/** Each tool that can be run in a turn, by its name. Tools that the model looks for and finds are passed to `offer`. */
export function runnersOf(
  nexus: Nexus,
  scope: TurnScope,
  editorTools: readonly vscode.LanguageModelToolInformation[],
  serverTools: readonly ServerTool[],
  offer: (found: readonly Record<string, Json>[]) => void,
): ReadonlyMap<string, Runner> {
  const ofDaemon = Object.entries(DAEMON_TOOLS).map(([name, { doing, run }]): [string, Runner] => [
    name,
    { doing, run: (call) => run(nexus, scope, call) },
  ]);
  const run = (call: ToolCall) => runEditorTool(call, scope.request.toolInvocationToken, scope.token);
  const ofEditor = editorTools.map(({ name }): [string, Runner] => [name, { doing: "Running", run }]);
  const ofServers = serverTools.map((tool): [string, Runner] => [
    tool.name,
    { doing: `Calling the MCP server ${tool.server}`, run: (call) => callServerTool(nexus, scope, tool, call) },
  ]);
  const search = (call: ToolCall) => searchServerTools(nexus, scope, call, offer);
  const ofSearch: [string, Runner] = [SEARCH, { doing: SEARCHING, run: search }];
  return new Map([...ofEditor, ...ofServers, ...ofDaemon, ofSearch]);
}

/** A definition of the context as the model takes it; none where nobody runs its calls. */
export function offeredTool(definition: Record<string, Json>, runners: ReadonlyMap<string, Runner>): Tool[] {
  const { name, description, inputSchema = definition.parameters } = definition;
  if (typeof name !== "string" || !runners.has(name)) {
    return [];
  }
  const schema = isRecord(inputSchema) ? inputSchema : { type: "object", properties: {} };
  return [{ name, description: typeof description === "string" ? description : name, inputSchema: schema }];
}

async function askMemory(nexus: Nexus, { folder, session, token }: TurnScope, call: ToolCall): Promise<string> {
  const params = { workspaceFolder: folder, session, tool: call.name, arguments: inputOf(call.arguments) };
  return (await nexus.request("nexus/memory/query", params, token)).text;
}

async function readSkill(nexus: Nexus, { folder, agent, token }: TurnScope, call: ToolCall): Promise<string> {
  const place = { workspaceFolder: folder, ...(agent === undefined ? {} : { agent }) };
  return (await nexus.request("nexus/skill/read", { ...place, arguments: inputOf(call.arguments) }, token)).text;
}

/** The result of a call that starts, messages, lists or ends agents; what is wrong with it is text for the model. */
async function callAgentTool(nexus: Nexus, scope: TurnScope, call: ToolCall): Promise<string> {
  const { folder, session, agent, token } = scope;
  const caller = { workspaceFolder: folder, session, ...(agent === undefined ? {} : { agent }) };
  const params = { ...caller, tool: call.name, arguments: inputOf(call.arguments) };
  return (await nexus.request("nexus/agent/call", params, token)).text;
}
