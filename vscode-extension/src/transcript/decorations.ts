/**
 * How a conversation looks in an editor: a bar of the speaker's colour beside each message, a rule above each turn.
 *
 * 1. The colours are those of the panel: the user's message, the history, tools, memory, Nexus's own text.
 * 2. What is no longer sent is dimmed, but not in high contrast. The heading says it, too.
 */
import * as vscode from "vscode";
import type { Speaker, TranscriptText } from "./text";

/** Lines, from 0: the first and the last. */
type Lines = readonly [first: number, last: number];

/** What is marked in a text. */
export interface Marks {
  /** Headings of turns, compactions and the place where a fork begins. */
  readonly turns: readonly number[];
  readonly changes: readonly number[];
  /** Names in the headings of messages: line and length. */
  readonly names: ReadonlyMap<Speaker, readonly (readonly [line: number, length: number])[]>;
  /** What each said. */
  readonly bodies: ReadonlyMap<Speaker, readonly Lines[]>;
  readonly notSent: readonly Lines[];
}

export function marks({ turns, fork }: TranscriptText): Marks {
  const messages = turns.flatMap((turn) => turn.messages);
  const isChange = ({ turn }: TranscriptText["turns"][number]) => turn.type !== "query";
  const by = <T>(make: (message: (typeof messages)[number]) => T): ReadonlyMap<Speaker, T[]> => {
    const made = new Map<Speaker, T[]>();
    for (const message of messages) made.set(message.speaker, [...(made.get(message.speaker) ?? []), make(message)]);
    return made;
  };
  return {
    turns: turns.filter((turn) => !isChange(turn)).map(({ line }) => line),
    changes: [...turns.filter(isChange).map(({ line }) => line), ...(fork === undefined ? [] : [fork])],
    names: by(({ title, line }) => [line, title.indexOf(" · ")] as const),
    bodies: by(({ line, last }) => [line + 1, last] as const),
    notSent: messages.filter((message) => !message.isSent).map(({ line, last }) => [line, last] as const),
  };
}

const COLOURS: Readonly<Record<Speaker, string>> = {
  user: "nexus.message",
  assistant: "nexus.history",
  tool: "nexus.tools",
  summary: "nexus.memory",
  system: "nexus.ownText",
};
/** Of what is not sent any more. */
const DIMMED = "0.75";

type Decoration = readonly [vscode.TextEditorDecorationType, (marks: Marks) => readonly vscode.Range[]];

export class TranscriptDecorations implements vscode.Disposable {
  readonly #decorations: readonly Decoration[] = [
    [rule("nexus.ownText"), ({ turns }) => turns.map(startOf)],
    [rule("nexus.memory"), ({ changes }) => changes.map(startOf)],
    ...Object.entries(COLOURS).flatMap(([name, colour]): Decoration[] => {
      const speaker = name as Speaker;
      return [
        [
          title(colour),
          ({ names }) => (names.get(speaker) ?? []).map(([line, end]) => new vscode.Range(line, 0, line, end)),
        ],
        [bar(colour), ({ bodies }) => (bodies.get(speaker) ?? []).map(linesOf)],
      ];
    }),
    [
      vscode.window.createTextEditorDecorationType({ opacity: DIMMED }),
      ({ notSent }) => (isHighContrast() ? [] : notSent.map(linesOf)),
    ],
  ];

  show(editor: vscode.TextEditor, text: TranscriptText): void {
    const all = marks(text);
    for (const [type, ranges] of this.#decorations) editor.setDecorations(type, ranges(all));
  }

  dispose(): void {
    for (const [type] of this.#decorations) type.dispose();
  }
}

function rule(colour: string): vscode.TextEditorDecorationType {
  return border(colour, "1px 0 0 0");
}

function bar(colour: string): vscode.TextEditorDecorationType {
  return border(colour, "0 0 0 2px");
}

function border(colour: string, borderWidth: string): vscode.TextEditorDecorationType {
  const borderColor = new vscode.ThemeColor(colour);
  return vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderColor,
    borderStyle: "solid",
    borderWidth,
  });
}

function title(colour: string): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({ color: new vscode.ThemeColor(colour), fontWeight: "bold" });
}

function isHighContrast(): boolean {
  const { HighContrast, HighContrastLight } = vscode.ColorThemeKind;
  return [HighContrast, HighContrastLight].includes(vscode.window.activeColorTheme.kind);
}

function startOf(line: number): vscode.Range {
  return new vscode.Range(line, 0, line, 0);
}

function linesOf([first, last]: Lines): vscode.Range {
  return new vscode.Range(first, 0, last, Number.MAX_SAFE_INTEGER);
}
