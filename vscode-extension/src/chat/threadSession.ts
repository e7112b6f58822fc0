/**
 * Which conversation of the daemon a chat thread of VS Code is in. Rules:
 *
 * 1. VS Code gives a participant no id of its thread. Each answer carries a `Mark` in its metadata, and the
 *    thread's next turn finds it in its history: that, and nothing else, ties a thread to a session.
 * 2. A thread stays in its session and folder, whatever the panel shows. The ledger's thread id finds the session
 *    again after it was renamed. Where it was deleted, a new one of its name begins, and the answer says so.
 * 3. Who switches the session (panel, command) and writes in the chat thread that answered last means that
 *    session: the thread goes on there. An older thread that is opened again keeps its own session, and the
 *    focus follows it.
 * 4. A turn that was taken back (edited, redone, restored) is still in the ledger. The thread then goes on in a
 *    fork from the last turn that it still shows: the model does not see what the user took back, and nothing is
 *    lost. Not so a turn of an agent: that stays in the agent's session.
 * 5. A new thread takes the session in focus while that has no turns, or where the user has picked it since the
 *    last turn, the most recent one included. Where another chat thread was in it last, a new session begins, named after the question:
 *    conversations do not mix unseen.
 * 6. Whatever is not "the same as in the turn before" is said in the answer's first line.
 */
import type { SessionInfo } from "../protocol";

/** What an answer's metadata keeps of its thread. */
export interface Mark {
  /** Our id of the chat thread. */
  chat: string;
  /** URI of the folder. */
  folder: string;
  session: string;
  /** The ledger's id of the session's line of turns, where it is known. */
  thread: string | null;
  /** The last turn that this chat thread wrote, up to this answer. */
  turn: string | null;
}

export interface Facts {
  mark: Mark | undefined;
  /** URI of the folder that was chosen, and that of the focus; whether the user picked its session since the last turn. */
  folder: string;
  focus: { folder: string; session: string; picked: boolean };
  /** The sessions of the folder. */
  sessions: readonly SessionInfo[];
  /** The ledger's id of the session that a chat of this folder was in last. */
  lastThread: string | undefined;
  /** The chat thread that answered last in this window, and the session it was in. */
  latest: { chat: string; session: string } | undefined;
  /** The chat thread does not show the last turn any more that it wrote in this window. */
  wentBack: boolean;
  prompt: string;
}

export type Reason = "same" | "switched" | "branch" | "cleared" | "deleted" | "first" | "chosen" | "fresh";

export interface ThreadSession {
  reason: Reason;
  session: string;
  /** The ledger's id; null: the session has to be created. */
  thread: string | null;
  /** Turns that it has already. */
  turns: number;
  /** Fork this session at this turn first. */
  fork?: { from: string; turn: string };
  /** The session that the user might have expected instead. */
  instead?: string;
}

/** The folder of a turn: the thread's, while the workspace has it. */
export function folderFor(mark: Mark | undefined, folders: readonly string[], focus: string): string {
  return mark !== undefined && folders.includes(mark.folder) ? mark.folder : focus;
}

export function choose(facts: Facts): ThreadSession {
  const { mark } = facts;
  if (mark === undefined || mark.folder !== facts.folder) {
    return forNewThread(facts);
  }
  const own = ownOf(mark, facts.sessions);
  const switched = switchedTo(facts, mark, own);
  if (switched !== undefined) {
    return at(facts, switched, "switched");
  }
  if (facts.wentBack) {
    return branch(facts, mark, own);
  }
  if (own !== undefined) {
    return { reason: "same", session: own.session, thread: own.thread, turns: own.turns };
  }
  const named = facts.sessions.some((one) => one.session === mark.session);
  return at(facts, mark.session, mark.thread === null ? "same" : named ? "cleared" : "deleted");
}

/** The session of a mark, also where it was renamed. */
export function ownOf(mark: Mark, sessions: readonly SessionInfo[]): SessionInfo | undefined {
  return sessions.find((one) => (mark.thread === null ? one.session === mark.session : one.thread === mark.thread));
}

/** A name like `stem`, or `stem (2)` and so on, that no session has. */
export function freeName(stem: string, taken: readonly string[]): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? stem : `${stem} (${number})`;
    if (!taken.includes(name)) {
      return name;
    }
  }
}

const LONGEST_TITLE = 40;

/** The first words of a question, for a session's name. */
export function titleOf(prompt: string): string {
  const words = prompt
    .replace(/[\p{C}\s]+/gu, " ")
    .trim()
    .split(" ");
  let title = [...(words.shift() ?? "")].slice(0, LONGEST_TITLE).join("");
  for (const word of words) {
    if (title.length + 1 + word.length > LONGEST_TITLE) {
      break;
    }
    title = `${title} ${word}`;
  }
  return title.replace(/[\s.,:;!?…]+$/u, "") || "chat";
}

function forNewThread(facts: Facts): ThreadSession {
  const { session } = facts.focus;
  const found = facts.focus.folder === facts.folder ? facts.sessions.find((one) => one.session === session) : undefined;
  if (facts.focus.folder !== facts.folder || found === undefined || found.turns === 0) {
    return at(facts, facts.focus.folder === facts.folder ? session : "main", "first");
  }
  if (facts.focus.picked || found.thread !== facts.lastThread) {
    return at(facts, session, "chosen");
  }
  return { ...fresh(facts), instead: session };
}

/** The session that the user switched to since the thread's last answer, if he did. */
function switchedTo(facts: Facts, mark: Mark, own: SessionInfo | undefined): string | undefined {
  const { latest, focus } = facts;
  const isOther = latest?.chat === mark.chat && focus.folder === facts.folder && focus.session !== latest.session;
  if (own === undefined && mark.thread !== null && focus.session === "main") {
    return undefined; // the session was deleted, and the focus went back by itself
  }
  return isOther && focus.session !== own?.session ? focus.session : undefined;
}

function branch(facts: Facts, mark: Mark, own: SessionInfo | undefined): ThreadSession {
  if (own === undefined || mark.turn === null) {
    return { ...fresh(facts), instead: mark.session };
  }
  const name = freeName(own.session, names(facts));
  return {
    reason: "branch",
    session: name,
    thread: null,
    turns: 0,
    fork: { from: own.session, turn: mark.turn },
    instead: own.session,
  };
}

function fresh(facts: Facts): ThreadSession {
  return { reason: "fresh", session: freeName(titleOf(facts.prompt), names(facts)), thread: null, turns: 0 };
}

function at(facts: Facts, session: string, reason: Reason): ThreadSession {
  const found = facts.sessions.find((one) => one.session === session);
  return { reason, session, thread: found?.thread ?? null, turns: found?.turns ?? 0 };
}

function names(facts: Facts): string[] {
  return facts.sessions.map((one) => one.session);
}
