/** Which conversation a document shows: it stands in its URI. */
import * as vscode from "vscode";
import { nameOf } from "../focus";

export const SCHEME = "nexus-transcript";

/** A conversation; `thread` is one that it had before it was cleared. */
export interface About {
  readonly folder: string;
  readonly session: string;
  readonly thread?: string;
}

export function uriOf({ folder, session, thread }: About): vscode.Uri {
  const name = session.replaceAll("/", "∕").replaceAll("\\", "∖"); // letters that look alike: one name, not a path
  const query = JSON.stringify({ folder, session, ...(thread ? { thread } : {}) });
  const path = `/${nameOf(vscode.Uri.parse(folder))}/${name}${thread ? ", cleared" : ""} (conversation)`;
  return vscode.Uri.from({ scheme: SCHEME, path, query });
}

export function aboutOf(uri: vscode.Uri): About | undefined {
  try {
    const { folder, session, thread } = JSON.parse(uri.query) as Partial<About>;
    if (typeof folder !== "string" || typeof session !== "string") return undefined;
    return { folder, session, ...(typeof thread === "string" ? { thread } : {}) };
  } catch {
    return undefined;
  }
}
