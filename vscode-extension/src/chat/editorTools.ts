/**
 * The editor's tools that a turn offers its model: what other extensions and MCP servers bring. Rules:
 *
 * 1. Only tools that the user chose: by the setting `nexus.chat.tools`, for every turn, or with `#tool` for one message.
 * 2. They go to the daemon as tools of the turn; it counts and filters them. What it leaves out is not offered.
 * 3. A tool with the name of one that the daemon runs is not taken.
 * 4. The editor runs a call, and asks the user where the tool wants that. A refusal or an error is a result for the
 *    model. A result becomes text; a note stands for what is not text.
 */
import * as vscode from "vscode";
import type { Json, ToolCall } from "../protocol";
import { abilitiesOf } from "./lm";
import { inputOf } from "./modelMessages";

const SETTING = "chat.tools";
const NO_RESULT = "The tool returned nothing.";
export const REFUSED = "The user did not allow this call. Do not repeat it; go on without it, or ask.";

export interface EditorTools {
  tools: vscode.LanguageModelToolInformation[];
  /** Why tools that the user attached are not offered, one line each. */
  notes: string[];
}

/** The tools that the setting names, for a model; where the model is not known, as for one that can call tools. */
export function toolsOfSetting(
  model: vscode.LanguageModelChat | undefined,
  isTaken: (name: string) => boolean,
): vscode.LanguageModelToolInformation[] {
  const names = vscode.workspace.getConfiguration("nexus").get<unknown>(SETTING, []);
  const patterns = (Array.isArray(names) ? names : []).filter((name) => typeof name === "string").map(patternOf);
  if (patterns.length === 0 || (model !== undefined && !abilitiesOf(model).tools)) {
    return [];
  }
  return vscode.lm.tools
    .filter(({ name }) => !isTaken(name) && patterns.some((pattern) => pattern.test(name)))
    .sort(byName);
}

/** The tools of a message: those of the setting, and those that the user attached to it. */
export function toolsOfMessage(request: vscode.ChatRequest, isTaken: (name: string) => boolean): EditorTools {
  const attached = [...new Set(request.toolReferences.map(({ name }) => name))];
  const canCall = abilitiesOf(request.model).tools;
  const tools = new Map(toolsOfSetting(request.model, isTaken).map((tool) => [tool.name, tool]));
  const notes: string[] = [];
  for (const name of attached) {
    const tool = vscode.lm.tools.find((one) => one.name === name);
    if (!canCall) {
      notes.push(`${name}: not offered, because ${request.model.name} cannot call tools`);
    } else if (tool === undefined) {
      notes.push(`${name}: not offered, because the editor has no such tool`);
    } else if (isTaken(name)) {
      notes.push(`${name}: not offered, because Nexus has a tool of this name`);
    } else {
      tools.set(name, tool);
    }
  }
  return { tools: [...tools.values()].sort(byName), notes };
}

/** As the daemon takes a tool. */
export function definitionOf({ name, description, inputSchema }: vscode.LanguageModelToolInformation): {
  [key: string]: Json;
} {
  const schema = inputSchema ?? { type: "object", properties: {} };
  return { name, description, inputSchema: schema as Json };
}

/** Run a call; the result is for the model. Rejects where the tool fails. */
export async function runEditorTool(
  call: ToolCall,
  toolInvocationToken: vscode.ChatParticipantToolToken | undefined,
  token: vscode.CancellationToken,
): Promise<string> {
  try {
    const input = inputOf(call.arguments);
    return textOfResult(await vscode.lm.invokeTool(call.name, { input, toolInvocationToken }, token));
  } catch (error) {
    if (isRefusal(error) && !token.isCancellationRequested) {
      return REFUSED;
    }
    throw error;
  }
}

/** A result as text. */
export function textOfResult({ content }: vscode.LanguageModelToolResult): string {
  const text = content.map(partText).join("\n");
  return text.trim() === "" ? NO_RESULT : text;
}

function partText(part: unknown): string {
  if (part instanceof vscode.LanguageModelTextPart) {
    return part.value;
  }
  const value: unknown = isObject(part) ? part.value : undefined;
  if (isObject(value) && isObject(value.node)) {
    return renderedText(value.node).replace(/^\n/u, "");
  }
  const [mimeType, data] = isObject(part) ? [part.mimeType, part.data] : [];
  if (typeof mimeType === "string" && data instanceof Uint8Array) {
    const isText = /^text\/|[/+]json$/u.test(mimeType);
    return isText ? new TextDecoder().decode(data) : `[Left out: ${mimeType}, ${data.length} bytes]`;
  }
  return typeof value === "string" ? value : "[Left out: a part that is not text]";
}

/** The text in a node of @vscode/prompt-tsx, in which most tools of the editor answer. */
function renderedText(node: Readonly<Record<string, unknown>>): string {
  const start = node.lineBreakBefore === true || node.lineBreakBefore === 1 ? "\n" : "";
  if (typeof node.text === "string") {
    return start + node.text;
  }
  const children = Array.isArray(node.children) ? node.children.filter(isObject) : [];
  return start + children.map(renderedText).join("");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function isRefusal(error: unknown): boolean {
  return error instanceof vscode.CancellationError || (error instanceof Error && error.name === "Canceled");
}

function patternOf(text: string): RegExp {
  const escaped = text.split("*").map((part) => part.replace(/[\\^$.+?()[\]{}|]/gu, "\\$&"));
  return new RegExp(`^${escaped.join(".*")}$`, "u");
}

function byName(one: vscode.LanguageModelToolInformation, other: vscode.LanguageModelToolInformation): number {
  return one.name < other.name ? -1 : 1;
}
