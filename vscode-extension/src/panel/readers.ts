/**
 * Who reads which instruction file, as a table: a row for each file, a column for each assistant. Pure.
 *
 * 1. A sign says what an assistant does with a file, and the tooltip what that costs, or why it is not read.
 * 2. Only assistants in use have a column, and the one that is looked at.
 * 3. Files of one name say their directory, too.
 */
import type { AssistantReadersResult, FileReader } from "../protocol";
import { directoryOf, nameOf, pathOf, repeated, tokensOf } from "./wording";

export interface ReadersColumn {
  readonly name: string;
  readonly title: string;
  /** Whether it is the one that is looked at. */
  readonly current: boolean;
  readonly tooltip: string;
}

export interface ReadersCell {
  readonly column: string;
  readonly use: FileReader["use"];
  readonly sign: string;
  /** For the mouse, and for a screen reader. */
  readonly tooltip: string;
}

export interface ReadersRow {
  readonly uri: string;
  readonly name: string;
  readonly directory: string;
  readonly tooltip: string;
  readonly cells: readonly ReadersCell[];
}

export interface ReadersTable {
  readonly columns: readonly ReadersColumn[];
  readonly rows: readonly ReadersRow[];
}

export const SIGNS: Readonly<Record<FileReader["use"], { sign: string; says: string }>> = {
  sent: { sign: "●", says: "in every request" },
  cut: { sign: "◐", says: "in part" },
  later: { sign: "○", says: "when something happens" },
  unread: { sign: "–", says: "not read" },
};

export function readersTable(
  { assistants: all, files }: AssistantReadersResult,
  {
    folder,
    home,
    current,
    inUse,
  }: { folder: string; home?: string | undefined; current: string; inUse: ReadonlySet<string> },
): ReadersTable {
  const assistants = all.filter(({ name }) => name === current || inUse.has(name));
  const isRepeated = repeated(files.map(({ uri }) => nameOf(uri)));
  const titles = new Map(assistants.map(({ name, title }) => [name as string, title]));
  return {
    columns: assistants.map(({ name, title, tokens, exact, verified, ownTokens }) => ({
      name,
      title,
      current: name === current,
      tooltip: [
        `${title}: ${tokensOf(tokens, exact)} of files in every request`,
        ...(ownTokens === null || ownTokens === undefined ? [] : [`${tokensOf(ownTokens, false)} of its own`]),
        ...(verified === "documentation" ? ["by documentation"] : []),
      ].join(", "),
    })),
    rows: files.map(({ uri, readers }) => ({
      uri,
      name: nameOf(uri),
      directory: isRepeated(nameOf(uri)) ? directoryOf(uri, { folder, home }) : "",
      tooltip: pathOf(uri, folder),
      cells: readers.flatMap((reader) => {
        const title = titles.get(reader.assistant);
        return title === undefined ? [] : cellOf(reader, title);
      }),
    })),
  };
}

function cellOf({ assistant, use, tokens, exact, reason }: FileReader, title: string): ReadersCell {
  const { sign, says } = SIGNS[use];
  const cost = tokens > 0 ? `, ${tokensOf(tokens, exact ?? false)}` : "";
  return {
    column: assistant,
    use,
    sign,
    tooltip: `${title}: ${says}${cost}${reason === undefined ? "" : `. ${reason}`}`,
  };
}
