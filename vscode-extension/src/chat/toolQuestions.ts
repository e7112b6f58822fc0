/**
 * Questions to the user whether the model may make a call. Rules:
 *
 * 1. A question stands in the chat, in the answer that waits for it: what would be called, with which arguments, and a
 *    button for each answer. A dialog asks where no answer of this window can show it.
 * 2. The agents of a turn ask in its answer, too. Several questions may be open at once; each has buttons of its own.
 * 3. A question ends with an answer, with its turn, or when the daemon waits no longer. Without an answer, the call is
 *    not allowed. A button that comes too late says so, and does nothing.
 * 4. Of a question that is open for REMIND_MS a message reminds: the chat may be out of sight, and the daemon waits for
 *    two minutes.
 */
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Json, ToolApproveResult } from "../protocol";
import { visible } from "../usage/figures";
import { plain } from "./markdown";

export const ANSWER_COMMAND = "nexus.chat.answerTool";
/** Characters of the arguments that a question shows. */
const MOST_SHOWN = 2_000;
const REMIND_MS = 15_000;

export interface ToolQuestion {
  /** URI of the folder, and the conversation of the turn. */
  readonly folder: string;
  readonly session: string;
  /** The agent whose model calls. */
  readonly agent?: string | undefined;
  readonly tool: string;
  /** The MCP server that runs it. */
  readonly server?: string | undefined;
  readonly arguments: Json;
}

/** A turn whose answer can show questions. */
export interface AskingTurn {
  readonly folder: string;
  readonly session: string;
  readonly stream: Pick<vscode.ChatResponseStream, "markdown" | "button">;
  readonly token: vscode.CancellationToken;
}

type Answer = "once" | "always" | "never";
type Outcome = Answer | "late" | "ended";

const TITLES: Readonly<Record<Answer, string>> = {
  once: "Allow",
  always: "Allow in This Conversation",
  never: "Don't Allow",
};

const OUTCOMES: Readonly<Record<Exclude<Outcome, "ended">, string>> = {
  once: "Allowed",
  always: "Allowed in this conversation",
  never: "Not allowed",
  late: "Not called, because no answer came in time",
};

export class ToolQuestions {
  private readonly turns = new Set<AskingTurn>();
  private readonly open = new Map<string, (answer: Answer) => void>();

  /** Have a turn's answer show questions, until that is disposed. */
  showIn(turn: AskingTurn): vscode.Disposable {
    this.turns.add(turn);
    return new vscode.Disposable(() => this.turns.delete(turn));
  }

  /** The user's answer. `token` is cancelled when nobody waits for it any more. */
  async ask(question: ToolQuestion, token: vscode.CancellationToken): Promise<Required<ToolApproveResult>> {
    const turn = this.turnOf(question);
    const outcome = turn === undefined ? await askInDialog(question) : await this.askInChat(question, turn, token);
    return { approved: outcome === "once" || outcome === "always", remember: outcome === "always" };
  }

  /** What a button of a question does. */
  answer(id: unknown, answer: unknown): void {
    const resolve = this.open.get(String(id));
    if (resolve !== undefined && typeof answer === "string" && Object.hasOwn(TITLES, answer)) resolve(answer as Answer);
    else void vscode.window.showInformationMessage("Nothing is called: nobody waits for this answer any more.");
  }

  /** The turn of the conversation; an agent's question belongs to the only turn of the folder, if there is one. */
  private turnOf({ folder, session }: ToolQuestion): AskingTurn | undefined {
    const turns = [...this.turns].filter((turn) => turn.folder === folder);
    return turns.find((turn) => turn.session === session) ?? (turns.length === 1 ? turns[0] : undefined);
  }

  private async askInChat(question: ToolQuestion, turn: AskingTurn, token: vscode.CancellationToken): Promise<Outcome> {
    if (turn.token.isCancellationRequested) return "ended";
    if (token.isCancellationRequested) return "late";
    const id = randomUUID();
    const reminder = setTimeout(() => void remind(question), REMIND_MS);
    const listening: vscode.Disposable[] = [];
    try {
      const outcome = await new Promise<Outcome>((resolve) => {
        this.open.set(id, resolve);
        listening.push(
          turn.token.onCancellationRequested(() => resolve("ended")),
          token.onCancellationRequested(() => resolve(turn.token.isCancellationRequested ? "ended" : "late")),
        );
        turn.stream.markdown(ownPart(`**${plain(titleOf(question))}**\n\n${argumentsCode(question.arguments)}`));
        for (const [answer, title] of Object.entries(TITLES)) {
          turn.stream.button({ title, command: ANSWER_COMMAND, arguments: [id, answer] });
        }
      });
      // the editor takes nothing more for an answer that was cancelled
      if (outcome !== "ended")
        turn.stream.markdown(ownPart(`> ${OUTCOMES[outcome]}: ${plain(visible(question.tool))}.`));
      return outcome;
    } finally {
      clearTimeout(reminder);
      this.open.delete(id);
      for (const one of listening) one.dispose();
    }
  }
}

function titleOf({ tool, server, agent }: ToolQuestion): string {
  const who = agent === undefined ? "the model" : `the model of the agent ${agent}`;
  const what = server === undefined ? tool : `${tool} of the MCP server ${server}`;
  return visible(`Allow ${who} to call ${what}?`);
}

/** A question that is dismissed means no. */
async function askInDialog(question: ToolQuestion): Promise<Answer> {
  const { once, always } = TITLES;
  const options = { modal: true, detail: argumentsText(question.arguments) };
  const title = await vscode.window.showWarningMessage(titleOf(question), options, once, always);
  return title === once ? "once" : title === always ? "always" : "never";
}

async function remind(question: ToolQuestion): Promise<void> {
  const show = "Open Chat";
  const text = `The chat waits for your answer. ${titleOf(question)}`;
  if ((await vscode.window.showInformationMessage(text, show)) === show) {
    await vscode.commands.executeCommand("workbench.action.chat.open");
  }
}

/** A part of its own, so that a fence that the model left open does not swallow it. */
function ownPart(markdown: string): vscode.MarkdownString {
  return new vscode.MarkdownString(`\n\n${markdown}\n\n`, true);
}

/** The arguments as lines of code that they cannot end. A block of code would cut off long lines. */
function argumentsCode(input: Json): string {
  return argumentsText(input).split("\n").map(codeSpan).join("\\\n");
}

function codeSpan(line: string): string {
  const longest = Math.max(0, ...[...line.matchAll(/`+/gu)].map(([run]) => run.length));
  const ticks = "`".repeat(longest + 1);
  const indented = line.replace(/^ +/u, (blanks) => "\u00a0".repeat(blanks.length)); // others would be taken away
  return `${ticks} ${indented} ${ticks}`;
}

function argumentsText(input: Json): string {
  const text = JSON.stringify(input, undefined, 2).split("\n").map(visible).join("\n");
  const rest = text.length - MOST_SHOWN;
  return rest > 0 ? `${text.slice(0, MOST_SHOWN)}\n… and ${rest} more characters, which are not shown` : text;
}
