/** The editor's language models: what they can do, and our messages in their classes. */
import * as vscode from "vscode";
import type { AssembleOptions } from "../protocol";
import type { Abilities, ModelMessage, Part } from "./modelMessages";
import type { Model, Piece, Tool } from "./toolLoop";

/**
 * An editor's model as one that can be asked. `justification` is shown where the editor asks for consent;
 * `modelOptions` are parameters by the names that the model's extension knows.
 */
export function modelOf(
  chat: vscode.LanguageModelChat,
  justification: string,
  modelOptions: Readonly<Record<string, unknown>> = {},
): Model {
  return {
    async *send(messages, tools, token): AsyncGenerator<Piece> {
      const options = {
        justification,
        ...(tools.length === 0 ? {} : { tools: tools.map(toolOf) }),
        ...(Object.keys(modelOptions).length === 0 ? {} : { modelOptions }),
      };
      const response = await chat.sendRequest(messages.map(messageOf), options, token);
      for await (const part of response.stream) {
        if (part instanceof vscode.LanguageModelTextPart) {
          yield { kind: "text", text: part.value };
        } else if (part instanceof vscode.LanguageModelToolCallPart) {
          yield { kind: "call", id: part.callId, name: part.name, input: part.input };
        }
      }
    },
  };
}

/**
 * What a model can do. Versions of the editor that do not say it leave tools to be tried; images need a class
 * that extensions may use from 1.106 on.
 */
export function abilitiesOf(chat: vscode.LanguageModelChat): Abilities {
  const capabilities: unknown = Reflect.get(chat, "capabilities");
  const says = (name: string): unknown =>
    typeof capabilities === "object" && capabilities !== null ? Reflect.get(capabilities, name) : undefined;
  return {
    tools: (says("supportsToolCalling") ?? says("toolCalling") ?? true) !== false,
    images: dataPart() !== undefined && (says("supportsImageToText") ?? says("imageInput") ?? true) !== false,
  };
}

/** The model's name and window, for the daemon. */
export function windowOf(model: vscode.LanguageModelChat): { model: string; maxContextTokens?: number } {
  return model.maxInputTokens > 0 ? { model: model.id, maxContextTokens: model.maxInputTokens } : { model: model.id };
}

/** What a turn with a model asks the daemon for. */
export function turnOptions(model: vscode.LanguageModelChat): AssembleOptions {
  return { ...windowOf(model), ...offeredTools(model) };
}

/** The tools of the daemon that a turn offers. */
export function offeredTools(model: vscode.LanguageModelChat | undefined): AssembleOptions {
  const { memoryTools, skillTools, agentTools } = toolSwitches(model);
  return {
    memoryTools,
    ...(skillTools ? { skillTools } : {}),
    ...(agentTools ? { agentTools } : {}),
    ...(offersServers(model) ? { mcpTools: true } : {}),
  };
}

/** Whether the tools of the folder's MCP servers are offered. */
function offersServers(model: vscode.LanguageModelChat | undefined): boolean {
  const canCall = model === undefined || abilitiesOf(model).tools;
  return canCall && vscode.workspace.getConfiguration("nexus.chat").get<boolean>("serverTools", true);
}

/** Which tools of the daemon the user wants for a model; one that is not known can call tools. */
export function toolSwitches(model: vscode.LanguageModelChat | undefined) {
  const settings = vscode.workspace.getConfiguration("nexus.chat");
  const canCall = model === undefined || abilitiesOf(model).tools;
  return {
    memoryTools: canCall && settings.get<boolean>("memoryTools", true),
    skillTools: canCall && settings.get<boolean>("skillTools", true),
    agentTools: canCall && settings.get<boolean>("agentTools", false),
  };
}

export function messageOf(spoken: ModelMessage): vscode.LanguageModelChatMessage {
  const role =
    spoken.role === "assistant"
      ? vscode.LanguageModelChatMessageRole.Assistant
      : vscode.LanguageModelChatMessageRole.User;
  return new vscode.LanguageModelChatMessage(role, spoken.parts.map(partOf));
}

function partOf(part: Part): vscode.LanguageModelInputPart {
  switch (part.kind) {
    case "text":
      return new vscode.LanguageModelTextPart(part.text);
    case "call":
      return new vscode.LanguageModelToolCallPart(part.id, part.name, part.input);
    case "result":
      return new vscode.LanguageModelToolResultPart(part.id, [new vscode.LanguageModelTextPart(part.text)]);
    case "image":
      return imageOf(part.mimeType, part.base64);
  }
}

type DataPart = { image(data: Uint8Array, mimeType: string): vscode.LanguageModelInputPart };

/** `LanguageModelDataPart`, which the types of 1.104 do not have and which may be used from 1.106 on. */
function dataPart(): DataPart | undefined {
  const [major = 0, minor = 0] = vscode.version.split(".").map(Number);
  const found: unknown = major > 1 || minor >= 106 ? Reflect.get(vscode, "LanguageModelDataPart") : undefined;
  return typeof found === "function" && "image" in found ? (found as unknown as DataPart) : undefined;
}

function imageOf(mimeType: string, base64: string): vscode.LanguageModelInputPart {
  const part = dataPart()?.image(Buffer.from(base64, "base64"), mimeType);
  return part ?? new vscode.LanguageModelTextPart(`[Left out: an image (${mimeType})]`);
}

function toolOf(tool: Tool): vscode.LanguageModelChatTool {
  return { name: tool.name, description: tool.description, inputSchema: tool.inputSchema };
}
