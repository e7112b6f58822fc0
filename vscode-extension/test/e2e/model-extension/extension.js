// A language model for tests: it answers the same request the same way, and writes down what it was sent.
//
// 1. The answer repeats the user's last line and says how many messages came: `Heard 3 messages. You said: …`.
// 2. `[[slow]]` in the last words: five words, and no end until it is cancelled.
// 3. `[[tool NAME {…}]]`: calls the tool of that name, when it is offered; its result is what the next answer repeats.
// 4. `[[fail]]`: the request fails.
// 5. The daemon's request for a summary gets a short one that names this model.
// 6. `@parrot hello` in the chat answers `Here.`: VS Code looks for models when a first question is asked.
// 7. For pictures: $NEXUS_TEST_MODEL_SAYS names a JSON file, `{"name": …, "answers": {"words of a question": answer}}`.
// 8. The tool `test_weather` says that it is sunny in `city`.
// 9. Every request, its end and its cancellation is a line of JSON in the file that $NEXUS_TEST_MODEL_LOG names.
const { appendFileSync, existsSync, readFileSync } = require("node:fs");
const vscode = require("vscode");

const MODEL = {
  id: "parrot",
  name: "Parrot",
  family: "parrot",
  version: "1",
  maxInputTokens: 200_000,
  maxOutputTokens: 4_000,
  isUserSelectable: true,
  isDefault: true,
  capabilities: { toolCalling: true },
};
/** Another one to pick, with a smaller window. */
const SMALL = { ...MODEL, id: "wren", name: "Wren", family: "wren", maxInputTokens: 90_000, isDefault: false };
const SLOW_WORDS = 5;
const SUMMARY = /Write the summary that will take the place of the messages/;

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.lm.registerLanguageModelChatProvider("nexus-test", {
      provideLanguageModelChatInformation: async () => [{ ...MODEL, name: says().name ?? MODEL.name }, SMALL],
      provideLanguageModelChatResponse: answer,
      provideTokenCount: async (_model, text) => Math.ceil(words(text).length / 4),
    }),
    vscode.lm.registerTool("test_weather", {
      invoke: ({ input }) =>
        new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(`Sunny in ${input.city}`)]),
    }),
    vscode.chat.createChatParticipant("nexus-test.parrot", (_request, _context, stream) => stream.markdown("Here.")),
  );
};

async function answer(_model, messages, options, progress, token) {
  const heard = messages.map((message) => ({ role: role(message), text: words(message) }));
  const tools = (options.tools ?? []).map((tool) => tool.name);
  log({
    event: "request",
    messages: heard,
    tools,
    definitions: options.tools ?? [],
    options: options.modelOptions ?? {},
  });
  const last = heard.at(-1)?.text ?? "";
  if (last.includes("[[fail]]")) {
    log({ event: "failed" });
    throw new Error("the test model was asked to fail");
  }
  const call = /\[\[tool (\S+) (\{.*?\})\]\]/.exec(last);
  if (call && tools.includes(call[1])) {
    progress.report(new vscode.LanguageModelToolCallPart("call-1", call[1], JSON.parse(call[2])));
    return log({ event: "called", tool: call[1] });
  }
  for (const part of reply(last, heard)) {
    if (token.isCancellationRequested) return log({ event: "cancelled" });
    progress.report(new vscode.LanguageModelTextPart(part));
  }
  if (last.includes("[[slow]]")) {
    if (!token.isCancellationRequested) await new Promise((resolve) => token.onCancellationRequested(resolve));
    return log({ event: "cancelled" });
  }
  log({ event: "answered" });
}

function reply(last, heard) {
  if (SUMMARY.test(last)) return ["## Goal\n", "Summary by the test model.\n", "## State\n", "Asked and answered.\n"];
  if (last.includes("[[slow]]")) return Array.from({ length: SLOW_WORDS }, (_, index) => `word${index + 1} `);
  const known = Object.entries(says().answers ?? {}).find(([question]) => last.includes(question));
  if (known) return known[1].split(/(?<=\s)/);
  return [`Heard ${heard.length} messages. `, "You said: ", last.trim().split("\n").at(-1)];
}

function says() {
  const file = process.env.NEXUS_TEST_MODEL_SAYS;
  return file && existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

function role(message) {
  if (message.role === vscode.LanguageModelChatMessageRole.User) return "user";
  return message.role === vscode.LanguageModelChatMessageRole.Assistant ? "assistant" : "system";
}

function words(message) {
  if (typeof message === "string") return message;
  return message.content.map(partText).join("");
}

function partText(part) {
  if (typeof part?.value === "string") return part.value;
  if (Array.isArray(part?.content)) return part.content.map(partText).join("");
  return part?.name ? `${part.name}(${JSON.stringify(part.input)})` : "";
}

function log(entry) {
  const file = process.env.NEXUS_TEST_MODEL_LOG;
  if (file) appendFileSync(file, `${JSON.stringify(entry)}\n`);
}
