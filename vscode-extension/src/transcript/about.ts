/** Which conversation a document shows: it stands in its URI. */
import * as vscode from "vscode";
import { nameOf } from "../focus";

export const SCHEME = "nexus-transcript";

/**
 * A conversation; `thread` is one that it had before it was cleared. With a `source` it is one that is not kept, or of
 * another folder, and `session` its title.
 */
export interface About {
  readonly folder: string;
  readonly session: string;
  readonly thread?: string;
  readonly source?: Source;
}

/** A conversation of the list of all programs. */
export interface Source {
  readonly program: string;
  readonly id: string;
}

const LONGEST_NAME = 60;

export function uriOf({ folder, session, thread, source }: About): vscode.Uri {
  const short = source && session.length > LONGEST_NAME ? `${session.slice(0, LONGEST_NAME)}…` : session;
  const name = short.replaceAll("/", "∕").replaceAll("\\", "∖"); // letters that look alike: one name, not a path
  const query = JSON.stringify({ folder, session, ...(thread ? { thread } : {}), ...(source ? { source } : {}) });
  const path = `/${nameOf(vscode.Uri.parse(folder))}/${name}${thread ? ", cleared" : ""} (conversation)`;
  return vscode.Uri.from({ scheme: SCHEME, path, query });
}

export function aboutOf(uri: vscode.Uri): About | undefined {
  try {
    const { folder, session, thread, source } = JSON.parse(uri.query) as Partial<About>;
    if (typeof folder !== "string" || typeof session !== "string") return undefined;
    const isSource = typeof source?.program === "string" && typeof source.id === "string";
    return {
      folder,
      session,
      ...(typeof thread === "string" ? { thread } : {}),
      ...(isSource ? { source: { program: source.program, id: source.id } } : {}),
    };
  } catch {
    return undefined;
  }
}
