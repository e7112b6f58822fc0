/**
 * `nexus/model/complete`: the daemon asks for a text, a summary say, and a model of the editor writes it. Rules:
 *
 * 1. The model of a chat request that is under way; else the one used last in the chat; else any other. The last
 *    two only where the user has allowed it before (`canSendRequest`): no dialog comes out of the blue.
 * 2. Where there is none, or the user does not want it, that is an error: the daemon then writes it itself.
 * 3. An answer longer than `maxTokens`, by the model's own count, is cut at a line's end. An empty one is an error.
 * 4. LIMIT_MS and the daemon's cancellation end it.
 */
import * as vscode from "vscode";
import { NexusError } from "../nexus";
import type { Message, ModelCompleteParams, ModelCompleteResult } from "../protocol";
import { modelOf } from "./lm";
import { modelMessagesOf } from "./modelMessages";
import type { Models } from "./models";

const LIMIT_MS = 60_000;
const JUSTIFICATION = "Nexus compacts a conversation with the model of your chat.";
/** Characters that a token may have, generously: more than that is not waited for. */
const LONGEST_TOKEN = 16;

/** Answer the daemon. Rejects with NexusError where no model may be asked, or none answers. */
export async function complete(
  models: Models,
  params: ModelCompleteParams,
  token: vscode.CancellationToken,
  limitMs = LIMIT_MS,
): Promise<ModelCompleteResult> {
  if (!vscode.workspace.getConfiguration("nexus").get<boolean>("compaction.useEditorModel", true)) {
    throw new NexusError("The setting nexus.compaction.useEditorModel is off.", "no-model");
  }
  const model = await models.allowed(params.model);
  if (model === undefined) {
    throw new NexusError("Nexus may use no model of the editor yet. Send @nexus a message first.", "no-model");
  }
  const source = new vscode.CancellationTokenSource();
  const cancelling = token.onCancellationRequested(() => source.cancel());
  const timer = setTimeout(() => source.cancel(), limitMs);
  try {
    if (token.isCancellationRequested) {
      source.cancel();
    }
    const said = await answerInTime(model, params, source.token);
    const content = await within(model, said, params.maxTokens, source.token);
    if (content.trim() === "") {
      throw new NexusError(`${model.name} answered nothing.`, "no-answer");
    }
    return { content, model: model.id };
  } catch (error) {
    throw source.token.isCancellationRequested && !token.isCancellationRequested
      ? new NexusError(`${model.name} did not answer within ${limitMs / 1000} s.`, "no-answer")
      : error;
  } finally {
    clearTimeout(timer);
    cancelling.dispose();
    source.dispose();
  }
}

async function answerInTime(
  model: vscode.LanguageModelChat,
  params: ModelCompleteParams,
  token: vscode.CancellationToken,
): Promise<string> {
  const most = params.maxTokens === undefined ? Number.POSITIVE_INFINITY : params.maxTokens * LONGEST_TOKEN;
  const messages = modelMessagesOf(params.messages.map(bodyOf), { tools: false, images: false });
  let said = "";
  for await (const piece of modelOf(model, JUSTIFICATION).send(messages, [], token)) {
    if (token.isCancellationRequested) {
      throw new NexusError("Cancelled.", "cancelled");
    }
    said += piece.kind === "text" ? piece.text : "";
    if (said.length > most) {
      break;
    }
  }
  if (token.isCancellationRequested) {
    throw new NexusError("Cancelled.", "cancelled");
  }
  return said;
}

/** A message of the daemon in the form of a body's: names of calls as OpenAI has them. */
function bodyOf({ role, content, toolCalls, toolCallId }: Message): {
  [key: string]: NonNullable<Message["meta"]> | null;
} {
  return {
    role,
    content: content ?? null,
    tool_calls: (toolCalls ?? []).map((call) => ({
      id: call.id,
      function: { name: call.name, arguments: call.arguments ?? null },
    })),
    tool_call_id: toolCallId ?? "",
  };
}

/** The text in at most `most` tokens, cut at the end of a line where there is one. */
async function within(
  model: vscode.LanguageModelChat,
  text: string,
  most: number | undefined,
  token: vscode.CancellationToken,
): Promise<string> {
  let kept = text;
  while (most !== undefined && kept !== "") {
    const count = await model.countTokens(kept, token);
    if (count <= most) {
      break;
    }
    const head = kept.slice(0, Math.min(kept.length - 1, Math.floor((kept.length * most) / count)));
    const end = head.lastIndexOf("\n");
    kept = end > head.length / 2 ? head.slice(0, end) : head;
  }
  return kept;
}
