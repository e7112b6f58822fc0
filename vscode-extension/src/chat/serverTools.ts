/**
 * The tools of the folder's MCP servers in a turn. Rules:
 *
 * 1. The daemon offers them: those of servers that the user approved, less what the settings deny.
 * 2. The user sees each call with its arguments, and allows it (`toolQuestions`); one tool can be allowed for a conversation, until the
 *    window closes or the server offers something else. A refusal is a result for the model. Where the daemon takes the
 *    turn, it asks the same question (`nexus/tool/approve`), and keeps what was allowed.
 * 3. The daemon runs a call. Its answer comes marked as data of the server. Of a long one the model is sent the beginning
 *    and the end; the ledger keeps all of it.
 * 4. If there are many tools, the model is offered a search. What it finds is offered from its next request on, in this
 *    turn by the client, in later ones by the daemon.
 */
import * as vscode from "vscode";
import type { Nexus } from "../nexus";
import type { Json, ToolApproveParams, ToolApproveResult, ToolCall } from "../protocol";
import { visible } from "../usage/figures";
import { REFUSED } from "./editorTools";
import { inputOf } from "./modelMessages";
import type { ShortResult } from "./toolLoop";
import type { ToolQuestions } from "./toolQuestions";
import type { TurnScope } from "./turnTools";

/** The tool that searches those of servers. */
export const SEARCH = "search_tools";
/** How names of their tools begin. */
export const PREFIX = "mcp__";

/** A tool as the model calls it, and whose it is. */
export interface ServerTool {
  /** Its name for the model. */
  readonly name: string;
  readonly server: string;
  /** Its name at the server. */
  readonly tool: string;
  /** What stands for everything that the server offers. */
  readonly pin: string;
}

/** Calls that the user need not be asked for, in this window. */
const allowed = new Set<string>();

/** The tools of servers among those of a context. */
export async function serverToolsOf(
  nexus: Nexus,
  { folder, agent, token }: TurnScope,
  offered: readonly Record<string, Json>[],
): Promise<ServerTool[]> {
  const isOfServers = (name: Json | undefined) =>
    typeof name === "string" && (name === SEARCH || name.startsWith(PREFIX));
  if (!offered.some(({ name }) => isOfServers(name))) return [];
  const params = { workspaceFolder: folder, ...(agent === undefined ? {} : { agent }) };
  const { servers } = await nexus.request("nexus/mcp/servers", params, token);
  return servers.flatMap(({ name: server, pin = "", tools = [] }) =>
    tools.map(({ offeredAs, name: tool }) => ({ name: offeredAs, server, tool, pin })),
  );
}

/** The answer of a tool for the model, after the user has allowed the call. Rejects where the daemon refuses it. */
export async function callServerTool(
  nexus: Nexus,
  { folder, session, agent, token, questions }: TurnScope,
  { server, tool, pin }: ServerTool,
  call: ToolCall,
): Promise<string | ShortResult> {
  const input = inputOf(call.arguments) as Record<string, Json>;
  const key = JSON.stringify([folder, session, server, tool, pin]);
  if (!allowed.has(key)) {
    const question = { folder, session, agent, tool, server, arguments: input };
    const { approved, remember } = await questions.ask(question, token);
    if (token.isCancellationRequested) throw new vscode.CancellationError();
    if (!approved) return REFUSED;
    if (remember) allowed.add(key);
  }
  const who = { workspaceFolder: folder, session, ...(agent === undefined ? {} : { agent }) };
  const result = await nexus.request("nexus/mcp/call", { ...who, server, tool, arguments: input }, token);
  const said = (text: string) => (result.isError ? `The tool says that it failed.\n${text}` : text);
  return result.whole === undefined ? said(result.text) : { text: said(result.text), whole: said(result.whole) };
}

/** The user's answer to the daemon, which runs a call in a turn of its own. It waits for two minutes at most. */
export async function approve(
  questions: ToolQuestions,
  { workspaceFolder: folder, session, tool, server, agent, arguments: input }: ToolApproveParams,
  token: vscode.CancellationToken,
): Promise<Required<ToolApproveResult>> {
  const prefix = `${PREFIX}${server}__`;
  const name = tool.startsWith(prefix) ? tool.slice(prefix.length) : tool;
  const answer = await questions.ask({ folder, session, agent, tool: name, server, arguments: input }, token);
  if (answer.approved && token.isCancellationRequested) {
    void vscode.window.showInformationMessage(visible(`${name} is not called: nobody waits for the answer any more.`));
  }
  return answer;
}

/** The answer to a search of the model; what it found is passed to `offer`. */
export async function searchServerTools(
  nexus: Nexus,
  { folder, agent, token }: TurnScope,
  call: ToolCall,
  offer: (found: readonly Record<string, Json>[]) => void,
): Promise<string> {
  const { query } = inputOf(call.arguments) as Record<string, Json>;
  const who = { workspaceFolder: folder, ...(agent === undefined ? {} : { agent }) };
  const { text, tools } = await nexus.request("nexus/mcp/search", { ...who, query: String(query ?? "") }, token);
  offer(tools);
  return text;
}
