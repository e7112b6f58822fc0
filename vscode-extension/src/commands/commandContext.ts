/** What commands need of the editor: who they are about, questions, progress, failures. */
import * as vscode from "vscode";
import type { Documents } from "../documents";
import { nameOf } from "../focus";
import { type Focus, type NextTurn, type Nexus, NexusError } from "../nexus";
import type { Requests } from "../protocol";
import { REMEDIES, type RemedyId } from "../server/remedies";

/** What a menu's entry or a program gives a command: a node of a tree, or what it is about. */
export interface Subject {
  readonly folder?: string;
  readonly session?: string;
  readonly agent?: string;
  /** Another assistant, such as `codex`. */
  readonly assistant?: string;
  /** A conversation that is not kept, or of another folder: its program, its id there, and its title. */
  readonly program?: string;
  readonly conversation?: string;
  readonly title?: string;
  /** Id of a turn of the conversation. */
  readonly turn?: string;
  /** Id of a compaction of the conversation. */
  readonly compaction?: string;
  /** Number of a message of the conversation. */
  readonly message?: number;
}

export interface CommandTarget {
  readonly folder: vscode.Uri;
  readonly workspaceFolder: string;
  readonly name: string;
}

/** What the bodies of commands have in common. */
export interface Tools {
  readonly nexus: Nexus;
  readonly focus: Focus;
  readonly nextTurn: NextTurn;
  readonly documents: Pick<Documents, "show" | "compare">;
  /** The folder that is meant. Raises Silent when there is none and the user opens none. */
  place(subject: Subject): Promise<CommandTarget>;
  /** Asks the daemon; where it takes a while, progress with a way out. */
  request<M extends keyof Requests>(
    title: string,
    method: M,
    params: Requests[M]["params"],
  ): Promise<Requests[M]["result"]>;
}

/** The user went away, or knows already: nothing is said. */
export class Silent extends Error {}

export function subjectOf(argument: unknown): Subject {
  if (typeof argument !== "object" || argument === null) return {};
  const node = argument as { subject?: unknown };
  const subject = (typeof node.subject === "object" && node.subject !== null ? node.subject : argument) as Record<
    string,
    unknown
  >;
  const text = (key: string) => (typeof subject[key] === "string" ? { [key]: subject[key] as string } : {});
  const message = typeof subject.message === "number" ? { message: subject.message } : {};
  return {
    ...text("folder"),
    ...text("session"),
    ...text("agent"),
    ...text("assistant"),
    ...text("program"),
    ...text("conversation"),
    ...text("title"),
    ...text("turn"),
    ...text("compaction"),
    ...message,
  };
}

export function makeTools(
  nexus: Nexus,
  focus: Focus,
  nextTurn: NextTurn,
  documents: Pick<Documents, "show" | "compare">,
): Tools {
  return {
    nexus,
    focus,
    nextTurn,
    documents,
    async place(subject) {
      const folder = subject.folder ? vscode.Uri.parse(subject.folder) : (focus.folder ?? (await askFolder()));
      return { folder, workspaceFolder: folder.toString(), name: nameOf(folder) };
    },
    request(title, method, params) {
      const options = { location: vscode.ProgressLocation.Window, title: `Nexus: ${title}` };
      return Promise.resolve(vscode.window.withProgress(options, () => nexus.request(method, params)));
    },
  };
}

async function askFolder(): Promise<vscode.Uri> {
  const open = "Open Folder";
  const chosen = await vscode.window.showInformationMessage(
    "Nexus works on folders on the disk, and none is open.",
    open,
  );
  if (chosen === open) await vscode.commands.executeCommand("vscode.openFolder");
  throw new Silent();
}

/** A command's body whose failures are said to the user. */
export function guarded(run: (...args: unknown[]) => Promise<unknown>): (...args: unknown[]) => Promise<unknown> {
  return async (...args) => {
    try {
      return await run(...args);
    } catch (error) {
      if (!(error instanceof Silent)) await sayFailure(error);
      return undefined;
    }
  };
}

async function sayFailure(error: unknown): Promise<void> {
  if (error instanceof NexusError && error.code === "cancelled") return;
  await showRemedies(error instanceof Error ? error.message : String(error), remediesOf(error));
}

/** What the user can do about a failure. */
export function remediesOf(error: unknown): readonly RemedyId[] {
  if (!(error instanceof NexusError) || error.code !== "not-ready") return ["output"];
  return error.remedies.length > 0 ? error.remedies : ["restart", "output"];
}

/** An error message with a button for each remedy. */
export async function showRemedies(message: string, remedies: readonly RemedyId[]): Promise<void> {
  const offered = remedies.map((id) => REMEDIES[id]);
  const title = await vscode.window.showErrorMessage(message, ...offered.map((remedy) => remedy.title));
  const remedy = offered.find((one) => one.title === title);
  if (remedy) await vscode.commands.executeCommand(remedy.command, ...(remedy.args ?? []));
}

/** What the user picks; raises Silent without a choice. */
export async function pick<T extends vscode.QuickPickItem>(
  items: T[] | Promise<T[]>,
  title: string,
  placeHolder: string,
): Promise<T> {
  const chosen = await vscode.window.showQuickPick(items, {
    title,
    placeHolder,
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (!chosen) throw new Silent();
  return chosen;
}

/** As `pick`, of items that are loaded again at each change while the list is open; what is active stays active. */
export async function pickLive<T extends vscode.QuickPickItem>(
  load: () => Promise<T[]>,
  changes: vscode.Event<unknown>,
  title: string,
  placeholder: string,
): Promise<T> {
  const list = vscode.window.createQuickPick<T>();
  Object.assign(list, { title, placeholder, busy: true, matchOnDescription: true, matchOnDetail: true });
  const parts: vscode.Disposable[] = [list];
  let newest = 0;
  try {
    return await new Promise<T>((resolve, reject) => {
      const refresh = async () => {
        const number = ++newest;
        const items = await load();
        if (number !== newest) return;
        const labels = list.activeItems.map(({ label }) => label);
        list.items = items;
        list.busy = false;
        const active = items.filter(({ label }) => labels.includes(label));
        if (active.length > 0) list.activeItems = active;
      };
      const start = () => void refresh().catch(reject);
      parts.push(
        changes(start),
        list.onDidAccept(() => list.selectedItems[0] && resolve(list.selectedItems[0])),
        list.onDidHide(() => reject(new Silent())),
      );
      list.show();
      start();
    });
  } finally {
    for (const part of parts) part.dispose();
  }
}

export interface Question {
  readonly title: string;
  readonly prompt?: string;
  readonly placeHolder?: string;
  readonly value?: string;
  /** What is wrong with a text; undefined: nothing. */
  readonly wrong?: (text: string) => string | undefined;
}

/** What the user types, without blanks around it; raises Silent when the box is left. */
export async function ask(question: Question): Promise<string> {
  const { wrong, ...options } = question;
  const text = await vscode.window.showInputBox({
    ...options,
    ...(wrong ? { validateInput: (typed: string) => wrong(typed.trim()) } : {}),
  });
  if (text === undefined) throw new Silent();
  return text.trim();
}

/** Raises Silent unless the user agrees. */
export async function confirm(message: string, detail: string, yes: string): Promise<void> {
  if ((await vscode.window.showWarningMessage(message, { modal: true, detail }, yes)) !== yes) throw new Silent();
}
