/** What the editor shows around a conversation's text: its outline, what can be folded, lenses. */
import * as vscode from "vscode";
import { exactly, plural } from "../usage/figures";
import type { OpenTranscript } from "./documents";
import { PAGE } from "./pages";
import type { MessagePlace, TranscriptText, TurnPlace } from "./text";

/** Characters of a message that the outline shows. */
const MOST_NAME = 60;

export function folding(text: TranscriptText | undefined): vscode.FoldingRange[] {
  const range = (first: number, last: number) => new vscode.FoldingRange(first, last, vscode.FoldingRangeKind.Region);
  return (text?.turns ?? []).flatMap((turn) => [
    ...(turn.last > turn.line ? [range(turn.line, turn.last)] : []),
    ...turn.messages.flatMap(({ line, last, parts }) => [
      range(line, last),
      ...parts.map(([first, end]) => range(first, end)),
    ]),
  ]);
}

/** Turns, and below each its messages. */
export function symbols(text: TranscriptText | undefined): vscode.DocumentSymbol[] {
  return (text?.turns ?? []).map((turn) => {
    const symbol = symbolOf(turn, vscode.SymbolKind.Event);
    symbol.children = turn.messages.map((message) => {
      const said = message.message.text
        .slice(0, 4 * MOST_NAME)
        .replace(/\s+/g, " ")
        .trim();
      const brief = said.length > MOST_NAME ? `${said.slice(0, MOST_NAME)}…` : said;
      return symbolOf(message, vscode.SymbolKind.String, brief);
    });
    return symbol;
  });
}

function symbolOf(
  { title, line, last }: TurnPlace | MessagePlace,
  kind: vscode.SymbolKind,
  detail?: string,
): vscode.DocumentSymbol {
  const [name = title, ...about] = title.split(" · ");
  const range = new vscode.Range(line, 0, last + 1, 0);
  return new vscode.DocumentSymbol(
    name,
    detail ?? about.join(" · "),
    kind,
    range,
    new vscode.Range(line, 0, line, title.length),
  );
}

/** At each turn what can be done from there, and at either end the way to more. */
export function lenses(transcript: OpenTranscript | undefined): vscode.CodeLens[] {
  const { text, pages, about, session, uri } = transcript ?? {};
  const page = pages?.shown;
  if (!text || !page || !about) return [];
  const at = (line: number, title: string, command: string, ...args: unknown[]) =>
    new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command, arguments: args });
  const { folder, source } = about;
  const key = uri?.toString();
  const more = (count: number) => plural(Math.min(PAGE, count), "message");
  const turns = source ? [] : text.turns; // what is not kept here is not forked here
  const made = turns.flatMap(({ line, turn }) => {
    const isInForce = turn.type === "compaction" && turn.first === page.summary;
    const compaction = { folder, session, compaction: turn.compaction };
    return [
      at(line, `Fork from Turn ${exactly(turn.seq)}`, "nexus.forkSession", { folder, session, turn: turn.turn }),
      ...(turn.receipt ? [at(line, "Show Receipt", "nexus.showReceipt", compaction)] : []),
      ...(isInForce ? [at(line, "Undo Compaction", "nexus.undoCompaction", compaction)] : []),
    ];
  });
  if (text.earlier !== undefined) {
    made.unshift(at(text.earlier, `Show ${more(page.first)} before`, "nexus.transcript.earlier", key));
  }
  if (text.later !== undefined) {
    made.push(at(text.later, `Show ${more(page.messages - page.end)} more`, "nexus.transcript.later", key));
  }
  return made;
}
