/** The next request as a text for people: what the model would be sent now. Pure. */

import type { AssembledContext, Json, Message } from "../protocol";
import { about, exactly, percentText } from "../usage/figures";

/** Markdown. Texts stand in fences that are longer than any in them. */
export function requestText(context: AssembledContext): string {
  const { usage } = context;
  const parameters = Object.entries(context.parameters).map(
    ([name, { value, origin }]) => `- \`${name}\`: ${JSON.stringify(value)} (${origin})`,
  );
  const tools = context.tools.map((tool) => fenced(JSON.stringify(tool, null, 2), "json"));
  const messages = [...context.history, ...(context.currentMessage ? [context.currentMessage] : [])];
  return [
    "# Next request",
    "",
    `${context.model || "no model"} (${context.provider || "no provider"}), conversation ${context.session}${context.agent ? `, as ${context.agent}` : ""}: ` +
      `${about(usage)}${exactly(usage.total)} of ${exactly(usage.available)} tokens, ${percentText(usage.percent)}`,
    "",
    ...(parameters.length > 0 ? ["## Parameters", "", ...parameters, ""] : []),
    "## System prompt",
    "",
    fenced(context.systemPrompt, "markdown"),
    "",
    `## Tools (${context.tools.length})`,
    "",
    ...tools.flatMap((tool) => [tool, ""]),
    `## Messages (${messages.length})`,
    "",
    ...messages.flatMap((message, index) => [...messageText(message, index + 1), ""]),
    ...leftOut(context),
  ].join("\n");
}

function messageText(message: Message, number: number): string[] {
  const who = [
    message.role,
    ...(message.name ? [message.name] : []),
    ...(message.toolCallId ? [`of ${message.toolCallId}`] : []),
  ];
  const content =
    typeof message.content === "string"
      ? message.content
      : message.content
        ? JSON.stringify(message.content, null, 2)
        : "";
  const calls = (message.toolCalls ?? []).map((call) =>
    fenced(JSON.stringify({ id: call.id, name: call.name, arguments: call.arguments ?? null }, null, 2), "json"),
  );
  return [`### ${number}. ${who.join(" ")}`, "", ...(content ? [fenced(content, "text")] : []), ...calls];
}

function leftOut({ metadata }: AssembledContext): string[] {
  const lines = [
    ...Object.entries(metadata.toolsLeftOut ?? {}).map(([name, why]) => `- tool \`${name}\`: ${why}`),
    ...(metadata.truncation
      ? [
          `- ${exactly(metadata.truncation.removedMessages)} messages of the conversation, ${exactly(metadata.truncation.removedTokens)} tokens (${metadata.truncation.strategy})`,
        ]
      : []),
    ...(metadata.memory?.dropped ?? []).map(
      (label) => `- ${label}: does not fit into what the conversation leaves free`,
    ),
    ...(metadata.unsent ?? []).map((what) => `- ${what}: the model does not take it`),
  ];
  return lines.length > 0 ? ["## Left out", "", ...lines, ""] : [];
}

function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/^\s*(`{3,})/gm)].map((found) => found[1]?.length ?? 0));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.endsWith("\n") ? text : `${text}\n`}${fence}`;
}

/** The same as JSON, without the text that is only for people. */
export function requestJson(context: AssembledContext): string {
  const { systemPrompt, history, currentMessage, tools, parameters, model, provider } = context;
  const values = Object.fromEntries(Object.entries(parameters).map(([name, { value }]) => [name, value]));
  const body: Record<string, unknown> = {
    provider,
    model,
    parameters: values,
    systemPrompt,
    history,
    currentMessage,
    tools,
  };
  return `${JSON.stringify(body as Record<string, Json>, null, 2)}\n`;
}
