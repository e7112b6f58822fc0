/** The slash commands of @nexus. Each answers with what the daemon says, and keeps the session it was about. */
import * as vscode from "vscode";
import type { Focus, NextTurn, Nexus } from "../nexus";
import type { AgentInfo, FolderParams, TokenUsage } from "../protocol";
import { totalOf } from "../usage/figures";
import { listAgents, withNextUsage } from "../usage/nextUsage";
import type { AnswerMetadata } from "./followups";
import { windowOf } from "./lm";
import { agentsTable, plain, receiptText, skillsTable, tokens, usageTable } from "./markdown";
import { providerOf } from "./providerTurn";
import { listServerPrompts, readServerPrompt } from "./serverPrompts";
import { freeName, type Mark } from "./threadSession";
import type { Threads } from "./threads";
import { receiptAction, undoAction } from "./turn";

export interface Chat {
  nexus: Nexus;
  focus: Focus;
  nextTurn: NextTurn;
  threads: Threads;
}

export interface Call {
  request: vscode.ChatRequest;
  context: vscode.ChatContext;
  stream: vscode.ChatResponseStream;
  token: vscode.CancellationToken;
}

/** A task for an agent: the handler runs it as a turn. */
export interface Task {
  /** Of the chat thread, where it is in a session. */
  mark: Mark | undefined;
  folder: string;
  agent: string;
  session: string;
  prompt: string;
  /** The agent was started for the task. */
  isNew?: boolean;
}

/** The message that a command stands for: the handler runs it as a turn where the chat is. */
export interface CommandTurn {
  prompt: string;
  skills?: readonly string[];
}

type Command = (chat: Chat, call: Call) => Promise<AnswerMetadata | Task | CommandTurn>;

export const COMMANDS: Readonly<Record<string, Command>> = { context, compact, fork, agent, skill, prompt, init };

/** Characters that are shown of a prompt of a server. */
const MOST_QUOTED = 2_000;

/** The folder's own agent: always there, and not among the live ones. */
const MAIN = "main";

const OPEN_PANEL: vscode.Command = { title: "Open Context Panel", command: "nexus.openPanel" };

async function context(
  { nexus, threads }: Chat,
  { request, context: chat, stream, token }: Call,
): Promise<AnswerMetadata> {
  const mark = await threads.look(chat, token);
  const agentInfo = await threads.agentIn(mark.folder, token);
  const scope = { folder: mark.folder, token, ...(agentInfo === undefined ? {} : { agent: agentInfo.agentId }) };
  const isEditors = (await providerOf(nexus, scope)) === undefined;
  const assembled = await nexus.request(
    "nexus/context/assemble",
    {
      workspaceFolder: mark.folder,
      session: agentInfo?.session ?? mark.session,
      ...(agentInfo === undefined ? {} : { agent: agentInfo.agentId }),
      // without a message: to look compacts nothing, and delivers no agent's messages
      ...(isEditors ? { options: windowOf(request.model) } : {}),
    },
    token,
  );
  stream.markdown(usageTable(assembled));
  stream.button(OPEN_PANEL);
  stream.button({ title: "Show Prompt", command: "nexus.showPrompt" });
  threads.moveTo(mark, chat);
  return { kind: "context", mark, percent: totalOf(assembled.usage).percent };
}

async function compact(
  { nexus, threads }: Chat,
  { request, context: chat, stream, token }: Call,
): Promise<AnswerMetadata> {
  const mark = await threads.look(chat, token);
  const session = (await threads.agentIn(mark.folder, token))?.session ?? mark.session;
  const instructions = request.prompt.trim();
  stream.progress("Compacting");
  const { compaction, receipt, usage } = await nexus.request(
    "nexus/session/compact",
    { workspaceFolder: mark.folder, session, ...(instructions === "" ? {} : { instructions }) },
    token,
  );
  stream.markdown(receiptText(receipt, session));
  stream.button(undoAction(mark.folder, session, compaction));
  stream.button(receiptAction(mark.folder, session, compaction));
  stream.button(OPEN_PANEL);
  threads.moveTo(mark, chat);
  return { kind: "compact", mark, percent: totalOf(usage).percent };
}

async function fork(
  { nexus, threads }: Chat,
  { request, context: chat, stream, token }: Call,
): Promise<AnswerMetadata> {
  const mark = await threads.look(chat, token);
  const names = (await threads.sessions(mark.folder, token)).map((one) => one.session);
  const to = request.prompt.trim() || freeName(mark.session, names);
  const params = { workspaceFolder: mark.folder, session: mark.session, to };
  const place = await nexus.request("nexus/session/fork", params, token);
  const moved = { ...mark, session: place.session, thread: place.thread };
  threads.moveTo(moved, chat);
  stream.markdown(
    `This chat goes on in **${plain(place.session)}**, a fork of **${plain(mark.session)}**, which stays as it is.`,
  );
  stream.button({
    title: `Back to ${mark.session}`,
    command: "nexus.chat.useSession",
    arguments: [mark.folder, mark.session],
  });
  return { kind: "fork", mark: moved };
}

async function init({ nexus, threads }: Chat, { context: chat, stream, token }: Call): Promise<AnswerMetadata> {
  const folder = threads.folderOf(threads.markIn(chat));
  const { created, existing } = await nexus.request("nexus/workspace/init", { workspaceFolder: folder }, token);
  listFiles(stream, "Created", created);
  listFiles(stream, "There already, and left alone", existing);
  return { kind: "init" };
}

function listFiles(stream: vscode.ChatResponseStream, title: string, uris: readonly string[]): void {
  if (uris.length === 0) {
    return;
  }
  stream.markdown(`${title}:\n`);
  for (const uri of uris) {
    stream.markdown("\n- ");
    stream.anchor(vscode.Uri.parse(uri));
  }
  stream.markdown("\n\n");
}

/** The first word of a prompt, and the rest. */
function firstWord(prompt: string): [string, string] {
  const [, word = "", rest = ""] = /^(\S*)\s*([\s\S]*)$/u.exec(prompt.trim()) ?? [];
  return [word, rest];
}

// ---------------------------------------------------------------- skills

async function skill({ nexus, threads }: Chat, call: Call): Promise<AnswerMetadata | CommandTurn> {
  const { request, context: history, stream, token } = call;
  const [name, message] = firstWord(request.prompt);
  if (name !== "") {
    return { skills: [name], prompt: message === "" ? `Use the skill ${name}.` : message };
  }
  const mark = threads.markIn(history);
  const folder = threads.folderOf(mark);
  const viewed = await threads.agentIn(folder, token);
  const agent = viewed === undefined ? {} : { agent: viewed.agentId };
  const result = await nexus.request("nexus/context/layers", { workspaceFolder: folder, ...agent }, token);
  stream.markdown(skillsTable(result));
  return { kind: "skill", ...(mark === undefined ? {} : { mark }) };
}

// ---------------------------------------------------------------- prompts of servers

async function prompt({ nexus, threads }: Chat, call: Call): Promise<AnswerMetadata | CommandTurn> {
  const { request, context: history, stream, token } = call;
  const mark = threads.markIn(history);
  const folder = threads.folderOf(mark);
  const viewed = await threads.agentIn(folder, token);
  const scope = { folder, token, ...(viewed === undefined ? {} : { agent: viewed.agentId }) };
  const [name, words] = firstWord(request.prompt);
  if (name !== "") {
    const text = await readServerPrompt(nexus, scope, name, words);
    stream.markdown(`${quote(text)}\n\n`); // it is sent as the user's own words: so they are seen
    return { prompt: text };
  }
  await listServerPrompts(nexus, scope, stream);
  return { kind: "prompt", ...(mark === undefined ? {} : { mark }) };
}

/** The beginning of a text as a quotation. */
function quote(text: string): string {
  const rest = text.length - MOST_QUOTED;
  const shown = rest > 0 ? `${text.slice(0, MOST_QUOTED)} … and ${rest} more characters` : text;
  return shown
    .split("\n")
    .map((line) => `> ${plain(line)}`)
    .join("\n");
}

// ---------------------------------------------------------------- agents

async function agent(chat: Chat, call: Call): Promise<AnswerMetadata | Task> {
  const { nexus, focus, nextTurn, threads } = chat;
  const { request, context: history, stream, token } = call;
  const mark = threads.markIn(history);
  const folder = threads.folderOf(mark);
  const cancellable: Pick<Nexus, "request"> = { request: (method, params) => nexus.request(method, params, token) };
  const [word, task] = firstWord(request.prompt);
  if (word === "") {
    const agents = await listAgents(cancellable, nextTurn, folder);
    showAgents(call, folder, agents, focus.folder?.toString() === folder ? focus.agent : undefined);
    return agentAnswer(mark);
  }
  if (word === MAIN) {
    focusOn(focus, folder);
    focus.setAgent(undefined);
    stream.markdown("From here on you talk to the folder's own agent. Send it messages without a command.");
    return agentAnswer(mark);
  }
  const { agents } = await cancellable.request("nexus/agent/list", { workspaceFolder: folder });
  const id = agents.some((one) => one.agentId === word) ? word : agentName(word);
  const live = agents.find((one) => one.agentId === id);
  const session = live?.session ?? (await spawned(chat, { workspaceFolder: folder }, { id, word }, task, token));
  if (task !== "") {
    return { mark, folder, agent: id, session, prompt: task, isNew: live === undefined };
  }
  if (live === undefined) {
    stream.markdown(`Agent **${plain(id)}** is started, with a conversation of its own, **${plain(session)}**.\n\n`);
  }
  focusOn(focus, folder);
  focus.setAgent(id);
  showViewed(stream, folder, id, live && (await withNextUsage(cancellable, nextTurn, folder, live)).usage);
  return { ...agentAnswer(mark), agent: id };
}

function agentAnswer(mark: Mark | undefined): AnswerMetadata {
  return mark === undefined ? { kind: "agent" } : { kind: "agent", mark };
}

function showAgents({ stream }: Call, folder: string, agents: readonly AgentInfo[], viewed: string | undefined): void {
  if (agents.length === 0) {
    stream.markdown(
      "No agent is live in this folder. `/agent FOLDER TASK` starts one in a directory of the folder; `agents` of config.json names some.",
    );
    return;
  }
  stream.markdown(`${agentsTable(agents, viewed)}\n\n`);
  for (const { agentId } of agents.filter((one) => one.agentId !== viewed)) {
    stream.button({ title: `View as ${agentId}`, command: "nexus.chat.viewAs", arguments: [folder, agentId] });
  }
}

function showViewed(stream: vscode.ChatResponseStream, folder: string, id: string, usage?: TokenUsage): void {
  const cost = usage === undefined ? "" : ` (${tokens(usage.total, usage.counter.exact)} tokens)`;
  stream.markdown(`From here on you talk to **${plain(id)}**: panel and chat show what it sees${cost}.`);
  stream.button({ title: "Back to the Folder's Own Agent", command: "nexus.chat.viewAs", arguments: [folder] });
}

/** Look at a folder. */
export function focusOn(focus: Focus, folder: string): void {
  if (focus.folder?.toString() !== folder) {
    focus.setFolder(vscode.Uri.parse(folder));
  }
}

/** An agent's name for what the user wrote, which may be a directory: `packages/api` becomes `packages-api`. */
function agentName(word: string): string {
  return word.replace(/[^\p{L}\p{N}_.-]+/gu, "-").replace(/^[-.]+|[-.]+$/gu, "") || word;
}

/** The directory of this name in a folder; the folder itself where there is none. */
async function directoryIn(folder: string, name: string): Promise<string> {
  const directory = vscode.Uri.joinPath(vscode.Uri.parse(folder), name);
  try {
    const { type } = await vscode.workspace.fs.stat(directory);
    return (type & vscode.FileType.Directory) === 0 ? folder : directory.toString().replace(/\/$/u, "");
  } catch {
    return folder;
  }
}

/** Start an agent: as the settings describe it where they name it, else in the directory of its name, else in the folder. */
async function spawned(
  { nexus }: Chat,
  folder: FolderParams,
  { id: agentId, word }: { id: string; word: string },
  task: string,
  token: vscode.CancellationToken,
): Promise<string> {
  const { config } = await nexus.request("nexus/config/effective", folder, token);
  const { agents } = config;
  const isNamed = typeof agents === "object" && agents !== null && !Array.isArray(agents) && agentId in agents;
  const params = {
    ...folder,
    agentId,
    ...(isNamed ? {} : { cwd: await directoryIn(folder.workspaceFolder, word) }),
    ...(task === "" ? {} : { task }),
  };
  return (await nexus.request("nexus/agent/spawn", params, token)).session;
}
