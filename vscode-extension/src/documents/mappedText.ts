/**
 * A text and where its parts come from: what go-to-source is made of. Pure.
 *
 * 1. Pieces cover the text in order and without overlap, as the daemon's fragments do.
 * 2. Of a verbatim piece each position has its own in the source; of another the piece's begin is meant.
 */
import type { Fragment, Location, Position, Range } from "../protocol";

export interface Section {
  readonly title: string;
  readonly range: Range;
  readonly tokens: number;
  readonly layer: string | null;
}

/** The piece at a position; at a border the one that begins there. */
export function fragmentAt(fragments: readonly Fragment[], at: Position): Fragment | undefined {
  let low = 0;
  let high = fragments.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const fragment = fragments[middle];
    if (!fragment) return undefined;
    if (before(at, fragment.range.start)) high = middle - 1;
    else if (!before(at, fragment.range.end) && middle < fragments.length - 1) low = middle + 1;
    else return fragment;
  }
  return undefined;
}

/** Where a position of the text comes from; undefined for text that is in no file. */
export function sourceOf(fragments: readonly Fragment[], at: Position): Location | undefined {
  const fragment = fragmentAt(fragments, at);
  const source = fragment?.source;
  if (!fragment || !source) return undefined;
  if (!fragment.verbatim) return source;
  const lines = at.line - fragment.range.start.line;
  const begin = lines === 0 ? source.range.start.character - fragment.range.start.character : 0;
  const place = { line: source.range.start.line + lines, character: Math.max(0, at.character + begin) };
  return { uri: source.uri, range: { start: place, end: place } };
}

/**
 * Where a place of a file stands in the prompt: from the heading that it has there to the end of its text, with what it
 * imports. Undefined: nowhere.
 */
export function placeIn(fragments: readonly Fragment[], { uri, range }: Location): Range | undefined {
  const own = fragments.filter((one) => one.source?.uri === uri);
  const inside = own.filter(({ source }) => source && isWithin(source.range, range));
  const parts = inside.length > 0 ? inside : own;
  const [first, last] = [parts[0], parts.findLast(({ verbatim }) => verbatim) ?? parts.at(-1)];
  return first && last && { start: first.range.start, end: last.range.end };
}

function isWithin(inner: Range, outer: Range): boolean {
  return !before(inner.start, outer.start) && !before(outer.end, inner.end);
}

/** Neighbours of one title as one section. Its tokens are the sum of its fragments'. */
export function sections(fragments: readonly Fragment[]): Section[] {
  const made: Section[] = [];
  for (const fragment of fragments) {
    const last = made.at(-1);
    if (last && last.title === fragment.title && last.layer === fragment.layer) {
      made[made.length - 1] = {
        ...last,
        range: { start: last.range.start, end: fragment.range.end },
        tokens: last.tokens + fragment.tokens,
      };
    } else {
      const { title, range, tokens, layer } = fragment;
      made.push({ title, range, tokens, layer });
    }
  }
  return made;
}

function before(a: Position, b: Position): boolean {
  return a.line < b.line || (a.line === b.line && a.character < b.character);
}
