/**
 * One turn of @nexus: the daemon's context, the model's answer, the ledger. Rules:
 *
 * 1. What is sent is what the daemon assembled for the model that the user picked, nothing else.
 * 2. The turn is written behind the very turn that the model was shown (`parentTurn`): where another window went
 *    on meanwhile, the daemon makes a fork, and the chat goes on there.
 * 3. The ledger has what was sent as the user's message, with what the user attached, and what the model said. A
 *    cancelled or failed answer is written as far as it came, marked `partial`. Where the model said nothing,
 *    nothing is written: the user still has the message in the chat.
 * 4. An agent's turn is a turn of the agent's own session; the chat thread stays where it is.
 * 5. A turn past the threshold is compacted by the daemon first: a notice says what that did, with the receipt and
 *    the way back. Where it was not (the settings, or the user took one back), a button asks for it.
 * 6. A context that the model refuses as too long, before it said anything, is compacted further and sent once more.
 * 7. Where the folder's settings name a provider, the daemon takes the turn with that one's model (`providerTurn`), by the
 *    same rules.
 */
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { changeText, lossText } from "../documents/receipt";
import type { NextTurn, Nexus } from "../nexus";
import type {
  AppendResult,
  AssembledContext,
  Attachment,
  Json,
  Message,
  Receipt,
  TokenUsage,
  ToolCall,
} from "../protocol";
import { totalOf } from "../usage/figures";
import { attachmentsOf, splitReferences } from "./editorFiles";
import { definitionOf, toolsOfMessage } from "./editorTools";
import { COMPACT, explain, type Failure } from "./failures";
import type { AnswerMetadata } from "./followups";
import { abilitiesOf, modelOf, turnOptions } from "./lm";
import { attachmentNotes, contextNotes, plain } from "./markdown";
import { modelMessagesOf } from "./modelMessages";
import type { Notices } from "./notices";
import { explainOptions, type ModelOption, modelOptionsOf } from "./parameters";
import { providerOf, sendTurn } from "./providerTurn";
import type { Recorder } from "./record";
import { type Attached, messageWith } from "./references";
import { readServerResources } from "./serverPrompts";
import { serverToolsOf } from "./serverTools";
import type { Mark } from "./threadSession";
import { type Answer, answerOf, type Tool } from "./toolLoop";
import type { ToolQuestions } from "./toolQuestions";
import { isDaemonTool, offeredTool, runnersOf, toolsNotOffered } from "./turnTools";

const JUSTIFICATION = "@nexus sends the folder's assembled context to the model that you picked in the chat.";

export interface Turn {
  request: vscode.ChatRequest;
  stream: vscode.ChatResponseStream;
  token: vscode.CancellationToken;
  folder: string;
  session: string;
  /** What is said of the turn, after the answer. */
  notices: Notices;
  agent?: string;
  /** The message, where it is not the request's prompt. */
  prompt?: string;
  /** Names of skills that the turn activates. */
  skills?: readonly string[];
}

/** Where a turn was written. */
type Written = Pick<AppendResult, "session" | "turn" | "forked" | "persists">;

export interface Taken {
  /** What was written; undefined where the model said nothing, or the ledger could not be written. */
  appended: Written | undefined;
  failure: Failure | undefined;
  partial: boolean;
  /** How full the model's window would be with the whole conversation, in percent; undefined where nobody counted. */
  percent: number | undefined;
}

/** What a turn is run with. */
export interface Desk {
  nexus: Nexus;
  recorder: Recorder;
  nextTurn: NextTurn;
  questions: ToolQuestions;
}

/** What a turn sends besides the conversation. */
interface Inputs {
  attached: Attached;
  attachments: Attachment[];
  tools: readonly vscode.LanguageModelToolInformation[];
}

/** Run a turn. Rejects where the daemon refuses to assemble it: then nothing was sent. */
export async function takeTurn(desk: Desk, turn: Turn): Promise<Taken> {
  const asking = desk.questions.showIn(turn);
  try {
    return await taken(desk, turn);
  } finally {
    asking.dispose();
  }
}

async function taken({ nexus, recorder, nextTurn, questions }: Desk, turn: Turn): Promise<Taken> {
  const { request, stream, notices } = turn;
  await caughtUp(recorder, turn);
  const { user, instructions } = splitReferences(request.references);
  void nextTurn.learn(instructions, user.length === 0);
  const provider = await providerOf(nexus, turn);
  const usage = provider === undefined ? undefined : await usageOf(nexus, turn);
  const said = await readServerResources(nexus, turn, request.prompt); // only the user's own words
  const window = usage?.available ?? request.model.maxInputTokens;
  const attached = await messageWith(promptOf(turn), user, said.resources, window);
  for (const used of attached.used) {
    stream.reference(used);
  }
  notices.add([...said.notes, ...attached.notes].map(plain));
  const attachments = await attachmentsOf(instructions);
  const { tools, notes } = toolsOfMessage(request, isDaemonTool);
  notices.add(notes.map(plain));
  const inputs = { attached, attachments, tools };
  if (provider !== undefined && usage !== undefined) {
    return sentToProvider(nexus, turn, inputs, provider, usage);
  }
  let [context, files] = await Promise.all([assembled(nexus, turn, inputs), filesOf(nexus, turn)]);
  showSources(turn, context.usage, context.metadata, files);
  notices.add(attachmentNotes(context));
  noteContext(turn, context);
  noteToolsLeftOut(turn, context, tools);
  let answer = await answered(nexus, { ...turn, questions }, inputs, context);
  let failure = failureOf(answer, request.model, context);
  if (failure?.overflow === true && answer.messages.length === 0) {
    const refusal = await compactFurther(nexus, turn);
    if (refusal === undefined) {
      context = await assembled(nexus, turn, inputs);
      answer = await answered(nexus, { ...turn, questions }, inputs, context);
      failure = failureOf(answer, request.model, context);
    } else {
      failure = { ...failure, message: `${failure.message} Compacting it did not help: ${refusal}` };
    }
  }
  const percent = context.metadata.wantedPercent;
  const partial = answer.end !== "whole" && answer.messages.length > 0;
  if (answer.end === "whole" && answer.messages.length === 0) {
    const message = `${request.model.name} answered nothing. Try again, or pick another model.`;
    return { appended: undefined, failure: { message, actions: [] }, partial, percent };
  }
  return { appended: await written(recorder, turn, attached, context, answer), failure, partial, percent };
}

function failureOf(answer: Answer, model: vscode.LanguageModelChat, context: AssembledContext): Failure | undefined {
  return answer.end === "failed" ? explainOptions(explain(answer.error, model.name), optionsOf(context)) : undefined;
}

function optionsOf({ request, parameters }: AssembledContext): ModelOption[] {
  return modelOptionsOf(request, parameters);
}

/** Compact the conversation because the model refused it as too long. Returns why that was refused, if it was. */
async function compactFurther(nexus: Nexus, turn: Turn): Promise<string | undefined> {
  const { folder, session, stream, request, token } = turn;
  stream.progress(`The context is too long for ${request.model.name}: compacting the conversation`);
  try {
    const { receipt } = await nexus.request(
      "nexus/session/compact",
      { workspaceFolder: folder, session, overflow: true },
      token,
    );
    noteCompaction(
      turn,
      `The context was too long for ${plain(request.model.name)}. Compacted, and sent once more`,
      receipt,
    );
    return undefined;
  } catch (error) {
    return explain(error, request.model.name).message;
  }
}

function noteCompaction({ notices, folder, session }: Turn, what: string, receipt: Receipt): void {
  notices.addChange(
    [`${what}: ${plain(changeText(receipt))}; ${lossText(receipt)}.`],
    [undoAction(folder, session, receipt.id), receiptAction(folder, session, receipt.id)],
  );
}

function promptOf(turn: Turn): string {
  return turn.prompt ?? turn.request.prompt;
}

/** The conversation's context for the turn, for the model that the user picked. */
function assembled(nexus: Nexus, turn: Turn, { attached, attachments, tools }: Inputs): Promise<AssembledContext> {
  return nexus.request(
    "nexus/context/assemble",
    {
      workspaceFolder: turn.folder,
      session: turn.session,
      ...(turn.agent === undefined ? {} : { agent: turn.agent }),
      message: attached.content,
      ...(attachments.length === 0 ? {} : { attachments }),
      ...(attached.used.length === 0 ? {} : { files: urisOf(attached) }),
      ...(tools.length === 0 ? {} : { turnTools: tools.map(definitionOf) }),
      format: "openai",
      options: {
        ...turnOptions(turn.request.model),
        ...(turn.skills === undefined ? {} : { skills: [...turn.skills] }),
      },
    },
    turn.token,
  );
}

// ---------------------------------------------------------------- the provider of the settings

/** Have the daemon take the turn. Rejects where nothing was said. */
async function sentToProvider(
  nexus: Nexus,
  turn: Turn,
  { attached, attachments, tools }: Inputs,
  provider: string,
  usage: TokenUsage,
): Promise<Taken> {
  const { folder, session, agent, skills, notices } = turn;
  notices.add(
    tools.map(({ name }) => plain(`${name}: not offered, because the editor runs it, and ${provider} is asked`)),
  );
  showSources(turn, usage, {}, await filesOf(nexus, turn));
  const disabledTools = toolsNotOffered();
  const { result, recorded, failure, isCompacted } = await sendTurn(nexus, turn, {
    workspaceFolder: folder,
    session,
    ...(agent === undefined ? {} : { agent }),
    message: asSaid(turn, attached),
    ...(attachments.length === 0 ? {} : { attachments }),
    ...(attached.used.length === 0 ? {} : { files: urisOf(attached) }),
    options: { disabledTools, ...(skills === undefined ? {} : { skills: [...skills] }) },
  });
  if (isCompacted) {
    const { receipt } = await nexus.request("nexus/session/receipt", { workspaceFolder: folder, session });
    noteCompaction(turn, "Compacted first", receipt);
  }
  const percent = result === undefined ? undefined : totalOf(result.usage).percent;
  const appended = result ?? (recorded === undefined ? undefined : { session, turn: recorded });
  if (appended !== undefined) {
    noteAppended(notices, appended, session);
  }
  return { appended, failure, partial: result === undefined, percent };
}

/** What the conversation costs before the message. */
function usageOf(nexus: Nexus, { folder, session, agent, token }: Turn): Promise<TokenUsage> {
  const params = { workspaceFolder: folder, session, ...(agent === undefined ? {} : { agent }) };
  return nexus.request("nexus/context/usage", params, token);
}

// ---------------------------------------------------------------- the model of the editor

async function answered(
  nexus: Nexus,
  turn: Turn & Pick<Desk, "questions">,
  inputs: Inputs,
  context: AssembledContext,
): Promise<Answer> {
  const { request, stream, token } = turn;
  const serverTools = await serverToolsOf(nexus, turn, context.tools);
  const tools: Tool[] = [];
  const offer = (definitions: readonly Record<string, Json>[]) => {
    const more = definitions.flatMap((definition) => offeredTool(definition, runners));
    tools.push(...more.filter(({ name }) => !tools.some((tool) => tool.name === name)));
  };
  const runners = runnersOf(nexus, turn, inputs.tools, serverTools, offer);
  offer(context.tools);
  const can = { ...abilitiesOf(request.model), tools: tools.length > 0 };
  const question = {
    messages: modelMessagesOf(context.request?.messages, can),
    tools,
    show: (text: string) => stream.markdown(text),
    run: async (call: ToolCall) => {
      const runner = runners.get(call.name);
      if (runner === undefined) {
        throw new Error(`nobody runs ${call.name}`);
      }
      stream.progress(`${runner.doing} (${call.name})`);
      return runner.run(call);
    },
  };
  const options = Object.fromEntries(optionsOf(context).map(({ name, value }) => [name, value]));
  return answerOf(modelOf(request.model, JUSTIFICATION, options), question, token);
}

// ---------------------------------------------------------------- the ledger

async function written(
  recorder: Recorder,
  turn: Turn,
  attached: Attached,
  context: AssembledContext,
  answer: Answer,
): Promise<AppendResult | undefined> {
  if (answer.messages.length === 0) {
    return undefined;
  }
  const key = randomUUID();
  try {
    const appended = await recorder.write({
      workspaceFolder: turn.folder,
      session: turn.session,
      messages: [asSaid(turn, attached), ...answer.messages],
      idempotencyKey: key,
      parentTurn: context.parentTurn ?? null,
      requestId: context.requestId ?? null,
      model: turn.request.model.id,
    });
    noteAppended(turn.notices, appended, turn.session);
    return appended;
  } catch (error) {
    noteNotWritten(turn.notices, error, key);
    return undefined;
  }
}

function asSaid(turn: Turn, attached: Attached): Message {
  const references = urisOf(attached);
  const meta: Record<string, Json> = { client: "vscode" };
  if (turn.skills !== undefined) {
    meta.skills = [...turn.skills];
  }
  if (attached.content !== promptOf(turn)) {
    Object.assign(meta, { prompt: promptOf(turn), references });
  }
  return { role: "user", content: attached.content, meta };
}

/** The files that the user attached, each as it was attached. */
function urisOf({ used }: Attached): string[] {
  return used.map((one) => (one instanceof vscode.Uri ? one : one.uri).toString());
}

function noteAppended(notices: Notices, appended: Written, session: string): void {
  if (appended.forked === true) {
    const names = `**${plain(appended.session)}**, a fork of **${plain(session)}**`;
    notices.addChange([`The conversation went on elsewhere meanwhile: this turn is in ${names}.`]);
  }
  if (appended.persists === false) {
    notices.add([
      "Conversations cannot be kept on this machine at the moment: this turn is gone when the server ends.",
    ]);
  }
}

function noteNotWritten(notices: Notices, error: unknown, key: string): void {
  const again = { title: "Record Again", command: "nexus.chat.recordAgain", arguments: [key] };
  notices.addChange([`**This turn is not in the ledger yet.** ${plain(explain(error, "").message)}`], [again]);
}

/** Turns that could not be written before come first: the order of a conversation matters. */
async function caughtUp(recorder: Recorder, turn: Turn): Promise<void> {
  try {
    await recorder.catchUp(turn.folder, turn.session);
  } catch (error) {
    turn.notices.add([`An earlier turn is still not in the ledger. ${plain(explain(error, "").message)}`]);
  }
}

// ---------------------------------------------------------------- what is shown

/** URIs of the files of all layers; none where they cannot be had: the turn goes on without them. */
async function filesOf(nexus: Nexus, turn: Turn): Promise<ReadonlySet<string>> {
  try {
    const { layers } = await nexus.request("nexus/context/layers", { workspaceFolder: turn.folder }, turn.token);
    return new Set(layers.flatMap((layer) => layer.files.map((file) => file.uri)));
  } catch {
    return new Set();
  }
}

/** The files that went into the prompt, as references: the layers' own, and others of the workspace. */
function showSources(
  turn: Turn,
  { rows }: TokenUsage,
  { attachments = [], instructions = [] }: Pick<AssembledContext["metadata"], "attachments" | "instructions">,
  files: ReadonlySet<string>,
): void {
  const sources = [
    ...rows.flatMap((row) => (row.category === "system" && row.source !== undefined ? [row.source.uri] : [])),
    ...[...instructions, ...attachments].filter(isSent).map((file) => file.uri),
  ];
  for (const source of new Set(sources)) {
    const uri = vscode.Uri.parse(source);
    if (files.has(source) || vscode.workspace.getWorkspaceFolder(uri) !== undefined) {
      turn.stream.reference(uri);
    }
  }
}

function isSent({ status }: { status: string }): boolean {
  return status === "sent" || status === "shortened";
}

/** The daemon compacts what is due before a turn: what that did, and the way back. Else, where it would help, a button. */
function noteContext({ notices, folder, session }: Turn, context: AssembledContext): void {
  const lines = contextNotes(context);
  if (lines.length === 0) {
    return;
  }
  const panel = { title: "Open Context Panel", command: "nexus.openPanel" };
  const { compaction } = context.metadata;
  const receipt = compaction?.receipt;
  if (receipt !== undefined) {
    notices.addChange(lines, [
      undoAction(folder, session, receipt.id),
      receiptAction(folder, session, receipt.id),
      panel,
    ]);
  } else {
    const isDue = compaction === undefined || compaction.problem !== undefined;
    notices.add(lines, isDue ? [COMPACT, panel] : [panel]);
  }
}

/** Why the folder's settings leave out tools that the user chose. */
function noteToolsLeftOut({ notices }: Turn, { metadata }: AssembledContext, tools: Inputs["tools"]): void {
  const reasons = metadata.toolsLeftOut ?? {};
  const lines = tools.flatMap(({ name }) => {
    const reason = reasons[name];
    return reason === undefined ? [] : [`${plain(name)}: not offered, because of the settings (${plain(reason)})`];
  });
  notices.add(lines);
}

/** The button that takes a compaction back. */
export function undoAction(folder: string, session: string, compaction: string): vscode.Command {
  return { title: "Undo Compaction", command: "nexus.chat.undoCompaction", arguments: [folder, session, compaction] };
}

/** The button that shows what a compaction did. */
export function receiptAction(folder: string, session: string, compaction: string): vscode.Command {
  return { title: "Show Receipt", command: "nexus.showReceipt", arguments: [{ folder, session, compaction }] };
}

/** What the answer's metadata keeps of a turn. */
export function answerOfTurn(taken: Taken, mark: Mark | undefined, agent: string | undefined): AnswerMetadata {
  const { failure, partial, percent } = taken;
  return {
    kind: "turn",
    ...(mark === undefined ? {} : { mark }),
    ...(percent === undefined ? {} : { percent }),
    ...(failure?.overflow === true ? { overflow: true } : {}),
    ...(partial ? { partial } : {}),
    ...(agent === undefined ? {} : { agent }),
  };
}
