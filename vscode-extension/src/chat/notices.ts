/**
 * What Nexus says beside the model's words: which conversation an answer is in, what was compacted, left out or forked.
 *
 * 1. It comes after the answer, all of its text before all of its buttons. VS Code takes the last run of Markdown as
 *    the answer, and folds away what stands before it into "Completed N steps": with a button between, that would be the
 *    answer itself.
 * 2. It comes also where the turn fails.
 * 3. VS Code shows nothing more of an answer that the user has cancelled. What the turn has changed is a message of the
 *    window then; the rest waits for the next answer of the chat.
 */
import * as vscode from "vscode";

export interface Notice {
  /** Markdown, a paragraph each. */
  readonly lines: readonly string[];
  readonly buttons: readonly vscode.Command[];
  /** Whether it says what the turn has changed. */
  readonly isChange: boolean;
}

export class Notices {
  private all: Notice[] = [];

  /** Where we are, and what the user might want to know. */
  add(lines: readonly string[], buttons: readonly vscode.Command[] = []): void {
    this.put({ lines, buttons, isChange: false });
  }

  /** What the turn has changed. */
  addChange(lines: readonly string[], buttons: readonly vscode.Command[] = []): void {
    this.put({ lines, buttons, isChange: true });
  }

  /** Notices that an answer before could not show. */
  addFirst(notices: readonly Notice[]): void {
    this.all = [...notices, ...this.all];
  }

  /** Show all that there is, once. Returns what waits for the next answer. */
  show(stream: vscode.ChatResponseStream, token: vscode.CancellationToken): readonly Notice[] {
    const notices = this.all;
    this.all = [];
    if (token.isCancellationRequested) {
      for (const change of notices.filter((notice) => notice.isChange)) void showMessage(change);
      return notices.filter((notice) => !notice.isChange);
    }
    const lines = notices.flatMap((notice) => notice.lines);
    if (lines.length > 0) stream.markdown(quoted(lines));
    for (const button of buttonsOf(notices)) stream.button(button);
    return [];
  }

  private put(notice: Notice): void {
    if (notice.lines.length > 0 || notice.buttons.length > 0) this.all.push(notice);
  }
}

/** A part of its own, so that a fence that the model left open does not swallow it. */
function quoted(lines: readonly string[]): vscode.MarkdownString {
  return new vscode.MarkdownString(`\n\n${lines.map((line) => `> ${line}`).join("\n>\n")}\n\n`, true);
}

/** Each once: several notices lead to the panel. */
function buttonsOf(notices: readonly Notice[]): vscode.Command[] {
  const buttons = new Map<string, vscode.Command>();
  for (const button of notices.flatMap((notice) => notice.buttons)) {
    const key = JSON.stringify([button.command, button.arguments]);
    if (!buttons.has(key)) buttons.set(key, button);
  }
  return [...buttons.values()];
}

async function showMessage({ lines, buttons }: Notice): Promise<void> {
  const titles = buttons.map((button) => button.title);
  const title = await vscode.window.showInformationMessage(lines.map(plainText).join(" "), ...titles);
  const button = buttons.find((one) => one.title === title);
  if (button) await vscode.commands.executeCommand(button.command, ...(button.arguments ?? []));
}

/** A line of ours without its Markdown: messages of the window show none. */
function plainText(line: string): string {
  return line.replace(/\\(.)|\*\*/gu, "$1");
}
