/**
 * The daemon's request body → messages for a model of the editor. No VS Code here. Rules:
 *
 * 1. The daemon's `openai` body is read, not its neutral history: it is repaired (every call has its result, none
 *    is an orphan) and checked against the window by the daemon itself.
 * 2. The editor's API knows the roles user and assistant only. The system prompt is the first user message, as
 *    VS Code's own guide for chat extensions does it.
 * 3. Calls and results are parts where tools are offered; otherwise they are text, because several models refuse
 *    such parts. Consecutive results share one message.
 * 4. Images are parts if the model takes them, else a text in their place.
 * 5. Empty messages are not sent.
 */
import type { Json, ToolCall } from "../protocol";

export type Part =
  | { kind: "text"; text: string }
  | { kind: "image"; mimeType: string; base64: string }
  | { kind: "call"; id: string; name: string; input: Record<string, Json> }
  | { kind: "result"; id: string; text: string };

export interface ModelMessage {
  role: "user" | "assistant";
  parts: Part[];
}

export interface Abilities {
  /** Tools are offered with this request. */
  tools: boolean;
  /** The model, and this version of the editor, take images. */
  images: boolean;
}

/** The messages of a body for OpenAI's chat completions, for a model of the editor. */
export function modelMessagesOf(messages: Json | undefined, can: Abilities): ModelMessage[] {
  const modelMessages: ModelMessage[] = [];
  for (const message of records(messages)) {
    const next = one(message, can);
    const before = modelMessages.at(-1);
    if (next.parts.length === 0) {
      continue;
    }
    if (before !== undefined && areResults(before) && areResults(next)) {
      before.parts.push(...next.parts);
    } else {
      modelMessages.push(next);
    }
  }
  return modelMessages;
}

/** A call's arguments as an object, parsed if they are JSON text. Any other value becomes `{ value }`. */
export function inputOf(given: Json | undefined): Record<string, Json> {
  const value = typeof given === "string" ? parsed(given) : given;
  if (isRecord(value)) {
    return value;
  }
  return value === undefined || value === null || value === "" ? {} : { value };
}

export function callText(name: string, input: Record<string, Json>): string {
  return `[Called ${name} with ${JSON.stringify(input)}]`;
}

function one(message: Record<string, Json>, can: Abilities): ModelMessage {
  if (message.role === "tool") {
    return { role: "user", parts: result(message, can) };
  }
  const parts = contentOf(message.content, can);
  if (message.role !== "assistant") {
    return { role: "user", parts };
  }
  const said = typeof message.refusal === "string" && parts.length === 0 ? textParts(message.refusal) : parts;
  return { role: "assistant", parts: [...said, ...callsOf(message.tool_calls).map((call) => callPart(call, can))] };
}

function result(message: Record<string, Json>, can: Abilities): Part[] {
  const id = typeof message.tool_call_id === "string" ? message.tool_call_id : "";
  const text = contentOf(message.content, can)
    .map((part) => (part.kind === "text" ? part.text : ""))
    .join("\n");
  return can.tools ? [{ kind: "result", id, text }] : textParts(`[Result of call ${id}]\n${text}`);
}

function callsOf(given: Json | undefined): ToolCall[] {
  return records(given).flatMap((call) => {
    const described = isRecord(call.function) ? call.function : undefined;
    const { id } = call;
    const name = described?.name;
    return typeof id === "string" && typeof name === "string"
      ? [{ id, name, arguments: described?.arguments ?? null }]
      : [];
  });
}

function callPart(call: ToolCall, can: Abilities): Part {
  const input = inputOf(call.arguments);
  return can.tools
    ? { kind: "call", id: call.id, name: call.name, input }
    : { kind: "text", text: callText(call.name, input) };
}

function contentOf(content: Json | undefined, can: Abilities): Part[] {
  if (typeof content === "string") {
    return textParts(content);
  }
  return records(content).flatMap((part) => {
    if (typeof part.text === "string") {
      return textParts(part.text);
    }
    if (typeof part.refusal === "string") {
      return textParts(part.refusal);
    }
    return pictured(part, can);
  });
}

const DATA_URL = /^data:([^;,]+);base64,(.*)$/s;

function pictured(part: Record<string, Json>, can: Abilities): Part[] {
  const link = isRecord(part.image_url) ? part.image_url.url : undefined;
  if (typeof link !== "string") {
    return textParts(`[Left out: ${typeof part.type === "string" ? part.type : "a part"} that the editor cannot send]`);
  }
  const [, mimeType, base64] = DATA_URL.exec(link) ?? [];
  if (mimeType === undefined || base64 === undefined) {
    return textParts(`[Image: ${link}]`);
  }
  return can.images ? [{ kind: "image", mimeType, base64 }] : textParts(`[Left out: an image (${mimeType})]`);
}

function textParts(text: string): Part[] {
  return text === "" ? [] : [{ kind: "text", text }];
}

function areResults(message: ModelMessage): boolean {
  return message.role === "user" && message.parts.every((part) => part.kind === "result");
}

function records(value: Json | undefined): Record<string, Json>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export function isRecord(value: Json | undefined): value is Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
