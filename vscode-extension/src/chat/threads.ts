/** The chat threads of this window: where each of them is, and what the daemon is told of it. */
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { foldersOnDisk } from "../focus";
import type { Focus, Nexus } from "../nexus";
import { NexusError } from "../nexus";
import type { AgentInfo, SessionInfo } from "../protocol";
import { markOf } from "./followups";
import { choose, folderFor, type Mark, ownOf, type ThreadSession } from "./threadSession";

const LAST = "nexus.chat.last";

/** Where a turn is. */
export interface Seat {
  place: ThreadSession;
  mark: Mark;
}

/** The chat thread that was answered last, how many answers it had before, and whether a turn was written. */
interface Latest {
  mark: Mark;
  answers: number;
  wrote: boolean;
}

export class Threads {
  private latest: Latest | undefined;
  /** For a chat thread, how many answers it had before the last turn that it wrote. */
  private readonly written = new Map<string, number>();

  constructor(
    private readonly nexus: Nexus,
    private readonly focus: Focus,
    private readonly memento: vscode.Memento,
  ) {}

  /**
   * The mark of a thread: what its answers kept. VS Code keeps nothing of an answer that was cancelled, so the
   * thread that was answered last is known from memory, too.
   */
  markIn(context: vscode.ChatContext): Mark | undefined {
    const answers = answersIn(context);
    const kept = markOf(answers.map((turn) => turn.result.metadata));
    const { latest } = this;
    if (latest === undefined || answers.length === 0) {
      return kept;
    }
    const isNext = answers.length === latest.answers + 1;
    const isSame = kept === undefined ? isNext : kept.chat === latest.mark.chat;
    return isSame && (answers.length > latest.answers || !latest.wrote) ? latest.mark : kept;
  }

  /** URI of the folder of a thread's turn. Rejects where there is no folder. */
  folderOf(mark: Mark | undefined): string {
    const focus = this.focus.folder?.toString();
    if (focus === undefined) {
      throw new NexusError("Open a folder on the disk first: Nexus puts its context together.", "no-folder");
    }
    return folderFor(
      mark,
      foldersOnDisk().map((one) => one.uri.toString()),
      focus,
    );
  }

  /** Choose the session of a turn, and make it where it does not exist yet. */
  async take(context: vscode.ChatContext, prompt: string, token: vscode.CancellationToken): Promise<Seat> {
    const mark = this.markIn(context);
    const folder = this.folderOf(mark);
    const answers = answersIn(context).length;
    const place = choose({
      mark,
      folder,
      focus: {
        folder: this.focus.folder?.toString() ?? "",
        session: this.focus.session,
        picked: this.focus.takePick(),
      },
      sessions: await this.sessions(folder, token),
      lastThread: this.last()[folder],
      latest:
        this.latest === undefined ? undefined : { chat: this.latest.mark.chat, session: this.latest.mark.session },
      wentBack: mark !== undefined && (this.written.get(mark.chat) ?? -1) >= answers,
      prompt,
    });
    const chat = mark?.chat ?? randomUUID();
    const turn = place.reason === "same" || place.reason === "branch" ? (mark?.turn ?? null) : null;
    const seat = {
      place,
      mark: { chat, folder, session: place.session, thread: await this.made(folder, place), turn },
    };
    if (place.reason !== "same") {
      this.written.delete(chat);
    }
    this.moveTo(seat.mark, context);
    return seat;
  }

  /** The session that a command is about: the thread's, else the one in focus. Nothing is made. */
  async look(context: vscode.ChatContext, token: vscode.CancellationToken): Promise<Mark> {
    const mark = this.markIn(context);
    const folder = this.folderOf(mark);
    const sessions = await this.sessions(folder, token);
    const isFocused = this.focus.folder?.toString() === folder;
    const here = isFocused ? this.focus.session : "main";
    const isSwitched = isFocused && mark !== undefined && this.isLatest(mark) && here !== this.latest?.mark.session;
    const own = mark === undefined || mark.folder !== folder || isSwitched ? undefined : ownOf(mark, sessions);
    const session = own?.session ?? here;
    const thread = sessions.find((one) => one.session === session)?.thread ?? null;
    const turn = own === undefined ? null : (mark?.turn ?? null);
    return { chat: mark?.chat ?? randomUUID(), folder, session, thread, turn };
  }

  /** The thread goes on here, and the focus follows it. `wrote`: with a turn that this answer is about. */
  moveTo(mark: Mark, context: vscode.ChatContext, wrote = false): void {
    const answers = answersIn(context).length;
    this.latest = { mark, answers, wrote };
    if (wrote) {
      this.written.set(mark.chat, answers);
    }
    if (mark.thread !== null) {
      void this.memento.update(LAST, { ...this.last(), [mark.folder]: mark.thread });
    }
    if (this.focus.folder?.toString() === mark.folder && this.focus.session !== mark.session) {
      this.focus.setSession(mark.session);
    }
  }

  /** The agent in focus, where it is alive; else the focus is back on the folder's own. */
  async agentIn(folder: string, token: vscode.CancellationToken): Promise<AgentInfo | undefined> {
    const wanted = this.focus.folder?.toString() === folder ? this.focus.agent : undefined;
    if (wanted === undefined) {
      return undefined;
    }
    const { agents } = await this.nexus.request("nexus/agent/list", { workspaceFolder: folder }, token);
    const found = agents.find((one) => one.agentId === wanted);
    if (found === undefined) {
      this.focus.setAgent(undefined);
    }
    return found;
  }

  async sessions(folder: string, token: vscode.CancellationToken): Promise<SessionInfo[]> {
    return (await this.nexus.request("nexus/session/list", { workspaceFolder: folder }, token)).sessions;
  }

  private isLatest(mark: Mark): boolean {
    return this.latest?.mark.chat === mark.chat;
  }

  private async made(folder: string, place: ThreadSession): Promise<string> {
    if (place.fork !== undefined) {
      const { from, turn } = place.fork;
      const params = { workspaceFolder: folder, session: from, turn, to: place.session };
      return (await this.nexus.request("nexus/session/fork", params)).thread;
    }
    const params = { workspaceFolder: folder, session: place.session };
    return place.thread ?? (await this.nexus.request("nexus/session/create", params)).thread;
  }

  private last(): Record<string, string> {
    return this.memento.get<Record<string, string>>(LAST, {});
  }
}

function answersIn(context: vscode.ChatContext): vscode.ChatResponseTurn[] {
  return context.history.filter((turn): turn is vscode.ChatResponseTurn => turn instanceof vscode.ChatResponseTurn);
}
