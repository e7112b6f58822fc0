/** Commands on conversations. What they are about is the menu's, else what is focused; who removes must say which. */
import * as vscode from "vscode";
import { changeText, lossText } from "../documents/receipt";
import { isFolder, MAIN } from "../focus";
import { NEXUS, NexusError } from "../nexus";
import { conversationNode } from "../panel/sessions";
import type {
  ConversationHit,
  ConversationInfo,
  ConversationSearchResult,
  Receipt,
  SearchHit,
  SessionInfo,
} from "../protocol";
import type { Transcripts } from "../transcript";
import type { Source } from "../transcript/about";
import { about, exactly, plural } from "../usage/figures";
import { nextUsage } from "../usage/nextUsage";
import {
  ask,
  type CommandTarget,
  confirm,
  guarded,
  pick,
  Silent,
  type Subject,
  subjectOf,
  type Tools,
} from "./commandContext";

const MOST_HITS = 50;
const MOST_LISTED = 200;

type Commands = Record<string, (...args: unknown[]) => Promise<unknown>>;

export function sessionCommands(tools: Tools, transcripts: Pick<Transcripts, "show">): Commands {
  return {
    "nexus.showTranscript": (arg) => showTranscript(tools, transcripts, subjectOf(arg)),
    "nexus.switchSession": (arg) => switchSession(tools, transcripts, subjectOf(arg)),
    "nexus.newSession": (arg) => newSession(tools, subjectOf(arg)),
    "nexus.forkSession": (arg) => forkSession(tools, subjectOf(arg)),
    "nexus.renameSession": (arg) => renameSession(tools, subjectOf(arg)),
    "nexus.clearSession": (arg) => clearSession(tools, subjectOf(arg)),
    "nexus.deleteSession": (arg) => deleteSession(tools, subjectOf(arg)),
    "nexus.exportSession": (arg) => exportSession(tools, subjectOf(arg)),
    "nexus.searchSessions": (arg) => searchSessions(tools, transcripts, subjectOf(arg)),
    "nexus.compact": (arg) => compact(tools, subjectOf(arg)),
    "nexus.rebase": (arg) => rebase(tools, subjectOf(arg)),
    "nexus.showReceipt": (arg) => showReceipt(tools, subjectOf(arg)),
    "nexus.undoCompaction": async (arg) => {
      const subject = subjectOf(arg);
      await undoCompaction(tools, ...(await meant(tools, subject)), subject.compaction);
    },
  };
}

async function showTranscript(tools: Tools, transcripts: Pick<Transcripts, "show">, subject: Subject): Promise<void> {
  const { program, conversation: id } = subject;
  if (program !== undefined && id !== undefined) {
    const { workspaceFolder } = await tools.place(subject);
    await transcripts.show({ folder: workspaceFolder, session: subject.title ?? id, source: { program, id } });
    return;
  }
  const [place, session] = await meant(tools, subject);
  const target = subject.message === undefined ? {} : { position: subject.message };
  await transcripts.show({ folder: place.workspaceFolder, session }, target);
}

/** Conversations of other programs and folders are offered, too; they can only be read. */
async function switchSession(tools: Tools, transcripts: Pick<Transcripts, "show">, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  if (subject.session !== undefined) return focusOn(tools, place, subject.session);
  const items = Promise.all([sessionsOf(tools, place), conversationsOf(tools, place)]).then(
    ([sessions, conversations]) => [
      ...sessions.map((one) => ({ ...sessionItem(one, tools.focus.session), subject: undefined })),
      ...conversationItems(sessions, conversations, place),
    ],
  );
  const chosen = await pick<ConversationItem>(items, `Switch Conversation · ${place.name}`, "Which conversation?");
  if (chosen.subject) await showTranscript(tools, transcripts, chosen.subject);
  else focusOn(tools, place, chosen.session);
}

async function newSession(tools: Tools, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  const session = await askName(tools, place, { title: "New Conversation", prompt: "Its name" });
  await tools.request("beginning a conversation", "nexus/session/create", {
    workspaceFolder: place.workspaceFolder,
    session,
  });
  focusOn(tools, place, session);
}

async function forkSession(tools: Tools, subject: Subject): Promise<void> {
  const [place, session] = await meant(tools, subject);
  const { turn } = subject;
  const shared = turn === undefined ? "all turns" : `the turns up to ${turn.slice(turn.lastIndexOf("-") + 1)}`;
  const prompt = `It shares ${shared} of "${session}"; nothing is copied, and each goes its own way.`;
  const to = await askName(tools, place, { title: `Fork "${session}"`, prompt, value: `${session} 2` });
  const { workspaceFolder } = place;
  await tools.request("forking", "nexus/session/fork", { workspaceFolder, session, to, ...(turn ? { turn } : {}) });
  focusOn(tools, place, to);
}

async function renameSession(tools: Tools, subject: Subject): Promise<void> {
  const [place, session] = await meant(tools, subject);
  const to = await askName(tools, place, { title: `Rename "${session}"`, prompt: "Its new name", value: session });
  if (to === session) return;
  await tools.request("renaming", "nexus/session/rename", { workspaceFolder: place.workspaceFolder, session, to });
  if (isFocused(tools, place, session)) tools.focus.setSession(to);
}

async function clearSession(tools: Tools, subject: Subject): Promise<void> {
  const [place, session] = await meant(tools, subject);
  const detail = "It starts over without its messages. Searches still find what was said.";
  await confirm(`Clear the conversation "${session}"?`, detail, "Clear");
  await tools.request("clearing", "nexus/session/clear", { workspaceFolder: place.workspaceFolder, session });
}

async function deleteSession(tools: Tools, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  const session = subject.session ?? (await pickSession(tools, place, "Delete Conversation"));
  const detail = "This removes it from the disk and from searches for good. A fork keeps the turns that it shares.";
  await confirm(`Delete the conversation "${session}"?`, detail, "Delete");
  await tools.request("deleting", "nexus/session/delete", { workspaceFolder: place.workspaceFolder, session });
  if (isFocused(tools, place, session)) tools.focus.setSession(MAIN);
}

async function exportSession(tools: Tools, subject: Subject): Promise<void> {
  const [place, session] = await meant(tools, subject);
  const formats = [
    { label: "Markdown", description: "to be read", format: "markdown" as const, ending: "md" },
    { label: "JSON lines", description: "can be imported again", format: "jsonl" as const, ending: "jsonl" },
  ];
  const { format, ending } = await pick(formats, `Export "${session}"`, "As what?");
  const { text } = await tools.request("exporting", "nexus/session/export", {
    workspaceFolder: place.workspaceFolder,
    session,
    format,
  });
  const name = `${session.replace(/[^\p{L}\p{N} ._-]/gu, "_")}.${ending}`;
  const file = await vscode.window.showSaveDialog({
    defaultUri: vscode.Uri.joinPath(place.folder, name),
    title: "Export Conversation",
  });
  if (!file) throw new Silent();
  await vscode.workspace.fs.writeFile(file, new TextEncoder().encode(text));
  await vscode.window.showTextDocument(file);
}

async function searchSessions(tools: Tools, transcripts: Pick<Transcripts, "show">, subject: Subject): Promise<void> {
  const place = await tools.place(subject);
  const query = await ask({
    title: "Search Conversations",
    prompt: 'All of these words; "two words" stand together, word* is a beginning, -word must not occur',
    wrong: (text) => (text ? undefined : "Type a word."),
  });
  const { hits, fileHits } = await search(tools, place, query);
  if (hits.length + fileHits.length === 0) {
    await vscode.window.showInformationMessage(
      `No message in this folder's conversations contains all of these words: ${query}`,
    );
    return;
  }
  const items = [...hits.map((hit) => hitItem(hit, place)), ...fileHits.map(fileHitItem)];
  const { hit, source } = await pick(items, `${plural(items.length, "message")} for ${query}`, "Which message?");
  if (source) {
    const about = { folder: place.workspaceFolder, session: source.title, source: source.of };
    await transcripts.show(about, { position: hit.position, snippet: hit.snippet });
    return;
  }
  focusOn(tools, place, hit.session);
  await showHit(tools, transcripts, place, hit);
}

/** What the folder's conversations of all programs have; of an older server, what Nexus keeps of the folder. */
async function search(
  tools: Tools,
  { workspaceFolder }: CommandTarget,
  query: string,
): Promise<Pick<ConversationSearchResult, "hits" | "fileHits">> {
  const params = { workspaceFolder, query, limit: MOST_HITS };
  const found = await unlessOlder(tools.request("searching", "nexus/conversation/search", params));
  return found ?? { ...(await tools.request("searching", "nexus/session/search", params)), fileHits: [] };
}

/** The result of a request; undefined of an older server, which does not know it. */
async function unlessOlder<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof NexusError && error.code === "method-not-found") return undefined;
    throw error;
  }
}

/** The message itself, what was found selected; also where the conversation was cleared since. */
async function showHit(
  tools: Tools,
  transcripts: Pick<Transcripts, "show">,
  place: CommandTarget,
  { session, thread, position, snippet }: SearchHit,
): Promise<void> {
  const { workspaceFolder } = place;
  const params = { workspaceFolder, session, thread, before: 0, limit: 1 };
  const { cleared } = await tools.request("opening the message", "nexus/session/transcript", params);
  const about = { folder: workspaceFolder, session, ...(cleared ? { thread } : {}) };
  await transcripts.show(about, { position, snippet });
}

async function compact(tools: Tools, subject: Subject): Promise<Receipt | undefined> {
  const [place, session] = await meant(tools, subject);
  const params = { workspaceFolder: place.workspaceFolder, session };
  const { receipt } = await tools.request("compacting", "nexus/session/compact", params);
  void guarded(() => sayReceipt(tools, place, session, receipt))();
  return receipt;
}

/** The next request has the prompt and the tools as they are now, in place of notes about what changed. */
async function rebase(tools: Tools, subject: Subject): Promise<void> {
  const [place, session] = await meant(tools, subject);
  const params = { workspaceFolder: place.workspaceFolder, session };
  await tools.request("applying the changes", "nexus/session/rebase", params);
}

/** What a compaction did, with a way back. */
async function sayReceipt(tools: Tools, place: CommandTarget, session: string, receipt: Receipt): Promise<void> {
  const said = `"${session}": ${changeText(receipt)}; ${lossText(receipt)}.`;
  const chosen = await vscode.window.showInformationMessage(said, "Undo", "Show Receipt");
  const subject = { folder: place.workspaceFolder, session, compaction: receipt.id };
  if (chosen === "Show Receipt") await showReceipt(tools, subject);
  else if (chosen === "Undo") await undoCompaction(tools, place, session, receipt.id);
}

/** The receipt of a compaction, else of the conversation's last one. */
async function showReceipt(tools: Tools, subject: Subject): Promise<void> {
  const [place, session] = await meant(tools, subject);
  const folder = place.workspaceFolder;
  const compaction = subject.compaction ?? (await lastCompaction(tools, folder, session));
  await tools.documents.show({ kind: "receipt", folder, session, compaction }, place.name);
}

async function lastCompaction(tools: Tools, workspaceFolder: string, session: string): Promise<string> {
  return (await tools.request("the receipt", "nexus/session/receipt", { workspaceFolder, session })).receipt.id;
}

async function undoCompaction(tools: Tools, place: CommandTarget, session: string, compaction?: string): Promise<void> {
  const params = { workspaceFolder: place.workspaceFolder, session, ...(compaction ? { compaction } : {}) };
  await tools.request("undoing", "nexus/session/undoCompaction", params);
  const { workspaceFolder } = place;
  const usage = await nextUsage(tools.nexus, tools.nextTurn, { workspaceFolder, session });
  const tokens = `${about(usage)}${exactly(usage.total)} tokens`;
  void vscode.window.showInformationMessage(`The messages of "${session}" are back: ${tokens}.`);
}

/** The conversation that is meant: the menu's, else the one that is shown; of an agent that is viewed, its own. */
export async function meant(tools: Tools, subject: Subject): Promise<[CommandTarget, string]> {
  const place = await tools.place(subject);
  if (subject.session !== undefined) return [place, subject.session];
  const agentId = tools.focus.agent;
  if (agentId === undefined) return [place, tools.focus.session];
  const params = { workspaceFolder: place.workspaceFolder, agentId };
  return [place, (await tools.request("the agent's conversation", "nexus/agent/get", params)).session];
}

/** Who chooses a conversation wants to see it: no agent is viewed any more. */
function focusOn(tools: Tools, place: CommandTarget, session: string): void {
  tools.focus.setFolder(place.folder);
  tools.focus.setAgent(undefined);
  tools.focus.pickSession(session);
}

function isFocused({ focus }: Tools, place: CommandTarget, session: string): boolean {
  return isFolder(place.workspaceFolder, focus.folder) && session === focus.session;
}

async function pickSession(tools: Tools, place: CommandTarget, title: string): Promise<string> {
  const items = sessionsOf(tools, place).then((all) => all.map((one) => sessionItem(one, tools.focus.session)));
  return (await pick(items, `${title} · ${place.name}`, "Which conversation?")).session;
}

/** All conversations; `main` is there also before its first turn. */
async function sessionsOf(tools: Tools, place: CommandTarget): Promise<SessionInfo[]> {
  const { sessions } = await tools.request("conversations", "nexus/session/list", {
    workspaceFolder: place.workspaceFolder,
  });
  if (sessions.some((one) => one.session === MAIN)) return sessions;
  return [{ session: MAIN, thread: "", turns: 0, messages: 0, tokens: 0, created: "", updated: "" }, ...sessions];
}

/** Those of all programs, in this folder and around it; none of an older server. */
async function conversationsOf(tools: Tools, { workspaceFolder }: CommandTarget): Promise<ConversationInfo[]> {
  const params = { workspaceFolder, limit: MOST_LISTED };
  const list = await unlessOlder(tools.request("conversations", "nexus/conversation/list", params));
  return list?.conversations ?? [];
}

type ConversationItem = vscode.QuickPickItem & { readonly session: string; readonly subject: Subject | undefined };

/** The conversations that are not among the folder's own sessions, below a line. */
function conversationItems(
  sessions: readonly SessionInfo[],
  conversations: readonly ConversationInfo[],
  place: CommandTarget,
): ConversationItem[] {
  const own = new Set(sessions.map(({ thread }) => thread));
  const given = { folder: place.workspaceFolder, now: new Date() };
  const items = conversations
    .filter(({ thread }) => thread === undefined || !own.has(thread))
    .map((one) => conversationNode(one, given))
    .map(({ label, description = "", subject }) => ({ session: "", label, description, subject }));
  const line = { label: "Read only", kind: vscode.QuickPickItemKind.Separator, session: "", subject: undefined };
  return items.length > 0 ? [line, ...items] : [];
}

function sessionItem(one: SessionInfo, focused: string): vscode.QuickPickItem & { session: string } {
  const from = one.forkedFrom ? [`forked from ${one.forkedFrom}`] : [];
  return {
    session: one.session,
    label: `${one.session === focused ? "$(check) " : ""}${one.session}`,
    description: [
      plural(one.turns, "turn"),
      plural(one.messages, "message"),
      `${one.exact === false ? "≈ " : ""}${plural(one.tokens, "token")}`,
      ...from,
    ].join(" · "),
    ...(one.updated ? { detail: `changed ${new Date(one.updated).toLocaleString()}` } : {}),
  };
}

/** A message that a search found; with a `source` it is not in a conversation of the folder's own. */
type HitItem = vscode.QuickPickItem &
  (
    | { readonly hit: SearchHit; readonly source?: undefined }
    | {
        readonly hit: Pick<SearchHit, "position" | "snippet">;
        readonly source: { readonly of: Source; readonly title: string };
      }
  );

function hitItem(hit: SearchHit, place: CommandTarget): HitItem {
  const { session, thread, workspaceFolder, assistant } = hit;
  const isOwn = workspaceFolder === undefined || isFolder(workspaceFolder, place.folder);
  const elsewhere = isOwn ? [] : [vscode.Uri.parse(workspaceFolder).fsPath];
  const item = {
    label: oneLine(hit.snippet),
    description: `${hit.role}, turn ${hit.seq}`,
    detail: [session, ...elsewhere, new Date(hit.created).toLocaleString()].join(" · "),
  };
  if (isOwn) return { ...item, hit };
  return { ...item, hit, source: { of: { program: assistant ?? NEXUS, id: thread }, title: session } };
}

function fileHitItem(hit: ConversationHit): HitItem {
  const { program, id, title = hit.id, created } = hit;
  const time = created === undefined ? [] : [new Date(created).toLocaleString()];
  return {
    hit,
    source: { of: { program, id }, title },
    label: oneLine(hit.snippet),
    description: `${hit.role}, ${hit.programTitle}, not kept`,
    detail: [title, ...time].join(" · "),
  };
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

async function askName(
  tools: Tools,
  place: CommandTarget,
  question: { title: string; prompt: string; value?: string },
): Promise<string> {
  const taken = new Set((await sessionsOf(tools, place)).filter((one) => one.thread).map((one) => one.session));
  return ask({ ...question, wrong: (name) => wrongName(name, taken, question.value) });
}

/** What is wrong with a conversation's name, as the daemon would say it later. */
export function wrongName(name: string, taken: ReadonlySet<string>, own?: string): string | undefined {
  if (name === "") return "Type a name.";
  if (/\p{Cc}/u.test(name)) return "Use one line of plain text.";
  if (taken.has(name) && name !== own) return `A conversation named "${name}" already exists.`;
  return undefined;
}
