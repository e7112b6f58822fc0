/**
 * One answer of a model, with its tool calls. Rules:
 *
 * 1. Text appears as it arrives. Calls of offered tools are run, and their results are sent to the model, for at
 *    most MOST_ROUNDS requests.
 * 2. Every call has a result, even if it failed, was not offered or was cancelled: providers refuse a conversation
 *    with a call that has none.
 * 3. What the model wrote before a cancellation or a failure is part of the answer, which is marked as partial.
 */
import type { CancellationToken } from "vscode";
import type { Json, Message, ToolCall } from "../protocol";
import { ModelFailure, textOf } from "./failures";
import { inputOf, type ModelMessage } from "./modelMessages";

export interface Tool {
  name: string;
  description: string;
  inputSchema: object;
}

export type Piece = { kind: "text"; text: string } | { kind: "call"; id: string; name: string; input: object };

/** A model that takes requests. */
export interface Model {
  send(messages: readonly ModelMessage[], tools: readonly Tool[], token: CancellationToken): AsyncIterable<Piece>;
}

/** A result of which the model is sent a part. The ledger keeps the whole, in the metadata of the message. */
export interface ShortResult {
  text: string;
  whole: string;
}

export interface Question {
  messages: readonly ModelMessage[];
  tools: readonly Tool[];
  /** Runs a call and returns its result for the model. */
  run(call: ToolCall): Promise<string | ShortResult>;
  /** Shows text of the answer. */
  show(text: string): void;
}

export interface Answer {
  /** For the ledger: the assistant's messages, and the results of its calls. */
  messages: Message[];
  end: "whole" | "cancelled" | "failed";
  error?: unknown;
}

/** Requests of one turn. */
export const MOST_ROUNDS = 6;

const CANCELLED = "The user cancelled before this call was run.";
const NO_MORE = "Not run: this turn has had all the calls that it may have.";

export async function answerOf(model: Model, question: Question, token: CancellationToken): Promise<Answer> {
  const messages: Message[] = [];
  const sent = [...question.messages];
  for (let round = 1; ; round++) {
    const part = await listen(model, question, sent, token);
    if (part.text !== "" || part.calls.length > 0) {
      messages.push(assistant(part));
    }
    if (part.calls.length === 0) {
      return ended(messages, part, token);
    }
    const mayGoOn = round < MOST_ROUNDS && part.error === undefined && !token.isCancellationRequested;
    const results = await resultsOf(part.calls, question, mayGoOn, token);
    messages.push(
      ...results.map(({ call, text, whole }) => ({
        role: "tool" as const,
        content: text,
        toolCallId: call.id,
        name: call.name,
        ...(whole === undefined ? {} : { meta: { whole } }),
      })),
    );
    if (!mayGoOn || token.isCancellationRequested) {
      const error = part.error ?? new ModelFailure(new Error("it kept calling tools instead of answering"));
      return ended(messages, { ...part, error }, token);
    }
    sent.push(...nextMessages(part, results));
  }
}

interface Part {
  text: string;
  calls: ToolCall[];
  error?: unknown;
}

async function listen(
  model: Model,
  question: Question,
  sent: readonly ModelMessage[],
  token: CancellationToken,
): Promise<Part> {
  const part: Part = { text: "", calls: [] };
  try {
    for await (const piece of model.send(sent, question.tools, token)) {
      if (token.isCancellationRequested) {
        break;
      }
      if (piece.kind === "call") {
        part.calls.push({ id: piece.id, name: piece.name, arguments: piece.input as Json });
      } else if (piece.text !== "") {
        part.text += piece.text;
        question.show(piece.text);
      }
    }
  } catch (error) {
    part.error = new ModelFailure(error);
  }
  return part;
}

interface Result {
  call: ToolCall;
  text: string;
  whole?: string;
}

async function resultsOf(
  calls: readonly ToolCall[],
  question: Question,
  mayRun: boolean,
  token: CancellationToken,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const call of calls) {
    const result = await resultOf(call, question, mayRun, token);
    results.push({ call, ...(typeof result === "string" ? { text: result } : result) });
  }
  return results;
}

async function resultOf(
  call: ToolCall,
  question: Question,
  mayRun: boolean,
  token: CancellationToken,
): Promise<string | ShortResult> {
  if (token.isCancellationRequested) {
    return CANCELLED;
  }
  if (!mayRun) {
    return NO_MORE;
  }
  if (!question.tools.some((tool) => tool.name === call.name)) {
    return `There is no tool ${call.name}. Offered: ${question.tools.map((tool) => tool.name).join(", ")}.`;
  }
  try {
    return await question.run(call);
  } catch (error) {
    return token.isCancellationRequested ? CANCELLED : `The call failed: ${textOf(error)}`;
  }
}

function assistant(part: Part): Message {
  const content = part.text === "" ? null : part.text;
  return part.calls.length === 0
    ? { role: "assistant", content }
    : { role: "assistant", content, toolCalls: part.calls };
}

function nextMessages(part: Part, results: readonly Result[]): ModelMessage[] {
  const calls = part.calls.map((call) => ({
    kind: "call" as const,
    id: call.id,
    name: call.name,
    input: inputOf(call.arguments),
  }));
  const text = part.text === "" ? [] : [{ kind: "text" as const, text: part.text }];
  return [
    { role: "assistant", parts: [...text, ...calls] },
    { role: "user", parts: results.map(({ call, text }) => ({ kind: "result", id: call.id, text })) },
  ];
}

function ended(messages: Message[], part: Part, token: CancellationToken): Answer {
  if (token.isCancellationRequested) {
    return { messages: partial(messages, { reason: "cancelled" }), end: "cancelled" };
  }
  if (part.error !== undefined) {
    return {
      messages: partial(messages, { reason: "failed", error: textOf(part.error) }),
      end: "failed",
      error: part.error,
    };
  }
  return { messages, end: "whole" };
}

/** The last message says that the answer is not whole, and why. */
function partial(messages: Message[], why: Record<string, string>): Message[] {
  return messages.map((message, index) =>
    index === messages.length - 1 ? { ...message, meta: { partial: true, ...why } } : message,
  );
}
