/**
 * The chat participant @nexus. Which session a chat thread is in: `place`. What a turn is: `turn`. The slash
 * commands: `commands`. What the daemon asks the editor's model: `complete`; and the user: `serverTools`.
 */
import * as vscode from "vscode";
import { remediesOf, showRemedies } from "../commands/commandContext";
import type { Focus, NextTurn, Nexus } from "../nexus";
import { type Call, type Chat, COMMANDS, type CommandTurn, focusOn, type Task } from "./commands";
import { complete } from "./complete";
import { explain, type Failure } from "./failures";
import { type AnswerMetadata, metadataOf, readAnswer, suggestions } from "./followups";
import { placeNote, plain } from "./markdown";
import { Models } from "./models";
import { type Notice, Notices } from "./notices";
import { whenReady } from "./ready";
import { Recorder } from "./record";
import { approve } from "./serverTools";
import type { ThreadSession } from "./threadSession";
import { Threads } from "./threads";
import { ANSWER_COMMAND, ToolQuestions } from "./toolQuestions";
import { answerOfTurn, type Taken, takeTurn } from "./turn";

export const PARTICIPANT = "nexus.chat";

/** How long a chat waits for a server that is starting; longer where it is being installed. */
const READY_MS = 180_000;
const RECORD_READY_MS = 20_000;

/** Register @nexus, its buttons' commands, and the answers to `nexus/model/complete`. */
export function registerChat(
  context: vscode.ExtensionContext,
  nexus: Nexus,
  focus: Focus,
  nextTurn: NextTurn,
): vscode.Disposable {
  const chat: Talk = {
    nexus,
    focus,
    nextTurn,
    threads: new Threads(nexus, focus, context.workspaceState),
    recorder: new Recorder(nexus, () => whenReady(nexus, RECORD_READY_MS)),
    models: new Models(context),
    questions: new ToolQuestions(),
    unseen: new Map(),
  };
  const participant = vscode.chat.createChatParticipant(PARTICIPANT, (request, history, stream, token) =>
    answer(chat, { request, context: history, stream, token }),
  );
  participant.iconPath = new vscode.ThemeIcon("layers");
  participant.followupProvider = {
    provideFollowups: (result) => suggestions(readAnswer(result.metadata)),
  };
  return vscode.Disposable.from(
    participant,
    nexus.answer("nexus/model/complete", (params, token) => complete(chat.models, params, token)),
    nexus.answer("nexus/tool/approve", (params, token) => approve(chat.questions, params, token)),
    ...buttons(chat),
  );
}

interface Talk extends Chat {
  recorder: Recorder;
  models: Models;
  questions: ToolQuestions;
  /** Notices that a cancelled answer could not show, by the id of its chat thread. */
  unseen: Map<string, readonly Notice[]>;
}

async function answer(chat: Talk, call: Call): Promise<vscode.ChatResult> {
  const { request, stream, token } = call;
  const done = chat.models.use(request.model);
  try {
    chat.threads.folderOf(chat.threads.markIn(call.context)); // without a folder, no server is started
    await whenReady(chat.nexus, READY_MS, token, (doing) => stream.progress(doing || "Starting the Nexus server"));
    const command = request.command === undefined ? undefined : COMMANDS[request.command];
    if (command === undefined) {
      return await talk(chat, call);
    }
    const answer = await command(chat, call);
    if ("kind" in answer) {
      return { metadata: metadataOf(answer) };
    }
    return "agent" in answer ? await talkToAgent(chat, call, answer) : await talk(chat, call, answer);
  } catch (error) {
    return token.isCancellationRequested ? {} : failed(call, explain(error, request.model.name));
  } finally {
    done();
  }
}

/** A turn where the chat is: in its conversation, or with the agent in view. */
async function talk(chat: Talk, call: Call, commandTurn?: CommandTurn): Promise<vscode.ChatResult> {
  const { request, stream, context } = call;
  const { prompt, skills }: CommandTurn = commandTurn ?? { prompt: request.prompt };
  if (prompt.trim() === "" && request.references.length === 0) {
    stream.markdown("Ask something, or try `/context` to see what the model would be sent.");
    return { metadata: metadataOf({ kind: "none" }) };
  }
  const known = chat.threads.markIn(context);
  const viewed = await chat.threads.agentIn(chat.threads.folderOf(known), call.token);
  if (viewed !== undefined) {
    const folder = chat.threads.folderOf(known);
    const { agentId: agent, session } = viewed;
    return talkToAgent(chat, call, { mark: known, folder, agent, session, prompt }, skills);
  }
  const { place, mark } = await chat.threads.take(context, prompt, call.token);
  const taken = await noticed(chat, call, mark.chat, (notices) => {
    introduce(chat, notices, place, mark.folder);
    const { folder, session } = mark;
    return takeTurn(chat, { ...call, notices, folder, session, prompt, ...(skills && { skills }) });
  });
  const { appended } = taken;
  const now = appended === undefined ? mark : { ...mark, turn: appended.turn };
  const moved = appended?.forked === true ? { ...now, session: appended.session, thread: null } : now;
  chat.threads.moveTo(moved, context, appended !== undefined);
  return resultOf(call, answerOfTurn(taken, moved, undefined), taken.failure);
}

/** A turn of an agent, in its own session. */
async function talkToAgent(chat: Talk, call: Call, task: Task, skills?: readonly string[]): Promise<vscode.ChatResult> {
  const { mark, folder, agent, session, prompt, isNew } = task;
  const taken = await noticed(chat, call, mark?.chat, (notices) => {
    const place = `Agent **${plain(agent)}**, in its conversation **${plain(session)}**.`;
    if (isNew === true) notices.addChange([`${place} It was started for this.`]);
    else notices.add([place]);
    return takeTurn(chat, { ...call, notices, folder, session, agent, prompt, ...(skills && { skills }) });
  });
  return resultOf(call, answerOfTurn(taken, mark, agent), taken.failure);
}

/** Run a turn, then show what there is to say of it, whatever became of it. `thread`: the chat thread's id. */
async function noticed(
  chat: Talk,
  call: Call,
  thread: string | undefined,
  turn: (notices: Notices) => Promise<Taken>,
): Promise<Taken> {
  const notices = new Notices();
  notices.addFirst(chat.unseen.get(thread ?? "") ?? []);
  chat.unseen.delete(thread ?? "");
  try {
    return await turn(notices);
  } finally {
    const unseen = notices.show(call.stream, call.token);
    if (thread !== undefined && unseen.length > 0) chat.unseen.set(thread, unseen);
  }
}

/** Say which session the answer is in, where that is not what it was before. */
function introduce(chat: Talk, notices: Notices, place: ThreadSession, folder: string): void {
  const said = placeNote(place);
  const elsewhere = chat.focus.folder?.toString() !== folder;
  const where = `Folder **${plain(vscode.workspace.getWorkspaceFolder(vscode.Uri.parse(folder))?.name ?? folder)}**.`;
  const lines = [...(said === "" ? [] : [said]), ...(elsewhere ? [where] : [])];
  if (place.reason === "branch") notices.addChange(lines);
  else notices.add(lines, placeButtons(place, folder));
}

function placeButtons({ reason, instead }: ThreadSession, folder: string): vscode.Command[] {
  if (reason === "chosen") return [{ title: "New Conversation", command: "nexus.newSession" }];
  if (reason !== "fresh" || instead === undefined) return [];
  const title = `Go On in ${instead} Instead`;
  return [{ title, command: "nexus.chat.useSession", arguments: [folder, instead] }];
}

function resultOf(call: Call, answer: AnswerMetadata, failure: Failure | undefined): vscode.ChatResult {
  const metadata = metadataOf(answer);
  return failure === undefined ? { metadata } : { ...failed(call, failure), metadata };
}

function failed({ stream }: Call, failure: Failure): vscode.ChatResult {
  for (const action of failure.actions) {
    stream.button(action);
  }
  const answer: AnswerMetadata = { kind: "failed", ...(failure.overflow === true ? { overflow: true } : {}) };
  return { errorDetails: { message: failure.message }, metadata: metadataOf(answer) };
}

// ---------------------------------------------------------------- buttons

/** Commands that buttons of answers run; they are not in the palette. */
function buttons(chat: Talk): vscode.Disposable[] {
  return [
    vscode.commands.registerCommand("nexus.chat.useSession", (folder: string, session: string) => {
      focusOn(chat.focus, folder);
      chat.focus.setAgent(undefined);
      chat.focus.pickSession(session);
    }),
    vscode.commands.registerCommand("nexus.chat.viewAs", (folder: string, agent?: string) => {
      focusOn(chat.focus, folder);
      chat.focus.setAgent(agent);
    }),
    vscode.commands.registerCommand(
      "nexus.chat.undoCompaction",
      (folder: string, session: string, compaction: string) =>
        reported(async () => {
          await chat.nexus.request("nexus/session/undoCompaction", { workspaceFolder: folder, session, compaction });
          return `Conversation ${session} is as it was before the compaction.`;
        }),
    ),
    vscode.commands.registerCommand(ANSWER_COMMAND, (id: unknown, answer: unknown) =>
      chat.questions.answer(id, answer),
    ),
    vscode.commands.registerCommand("nexus.chat.recordAgain", (key: string) =>
      reported(async () => {
        const appended = await chat.recorder.writeKept(key);
        return appended === undefined
          ? "The turn is in the ledger already."
          : `The turn is in conversation ${appended.session}.`;
      }),
    ),
  ];
}

async function reported(run: () => Promise<string>): Promise<void> {
  try {
    void vscode.window.showInformationMessage(await run());
  } catch (error) {
    await showRemedies(explain(error, "").message, remediesOf(error));
  }
}
