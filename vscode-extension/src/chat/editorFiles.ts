/**
 * Instruction files that VS Code attaches to each chat message by itself, told apart from what the user attached.
 *
 * 1. Their references have ids that begin with INSTRUCTIONS. The daemon leaves out those that the prompt has, and
 *    sends the others once, beside the conversation.
 * 2. The index of customizations names files for a tool that reads them. @nexus has no such tool, so it is dropped.
 * 3. The daemon reads files itself, unsaved text first. It cannot read other schemes, such as the user's profile:
 *    of those the text is sent along.
 */
import * as vscode from "vscode";
import type { Attachment } from "../protocol";

const INSTRUCTIONS = "vscode.instructions.file.";
const INDEX = "vscode.customizations.index";

export interface SplitReferences {
  /** What the user attached. */
  user: vscode.ChatPromptReference[];
  /** Instruction files that the editor attached. */
  instructions: vscode.Uri[];
}

/** Separates the user's references from the editor's own. */
export function splitReferences(references: readonly vscode.ChatPromptReference[]): SplitReferences {
  const user: vscode.ChatPromptReference[] = [];
  const instructions: vscode.Uri[] = [];
  for (const reference of references) {
    if (reference.id.startsWith(INSTRUCTIONS) && reference.value instanceof vscode.Uri) {
      instructions.push(reference.value);
    } else if (reference.id !== INDEX) {
      user.push(reference);
    }
  }
  return { user, instructions };
}

/** The files as the daemon takes them. One that cannot be read goes without text: the daemon reports it. */
export function attachmentsOf(uris: readonly vscode.Uri[]): Promise<Attachment[]> {
  return Promise.all(uris.map(attachmentOf));
}

async function attachmentOf(uri: vscode.Uri): Promise<Attachment> {
  if (uri.scheme === "file") {
    return { uri: uri.toString() };
  }
  try {
    const document = await vscode.workspace.openTextDocument(uri);
    return { uri: uri.toString(), text: document.getText() };
  } catch {
    return { uri: uri.toString() };
  }
}
