/**
 * The part of a conversation that is shown: pages that follow each other without a gap.
 *
 * 1. It begins with the last page, or with the messages around one that is looked for.
 * 2. Of a conversation whose end is shown the new turns are added; of another only what is still sent is renewed.
 * 3. Beyond MOST_CHARACTERS what is farthest from the page that came last is let go: the text stays one that an editor
 *    shows at once.
 */
import type { Nexus } from "../nexus";
import type { Requests, TranscriptMessage, TranscriptResult, TranscriptTurn } from "../protocol";

type Params = Requests["nexus/session/transcript"]["params"];
type SourceParams = Requests["nexus/conversation/transcript"]["params"];
type Ask = (where: Pick<Params, "first" | "before" | "limit">) => Promise<TranscriptResult>;

/** Messages of a page. */
export const PAGE = 200;
export const MOST_CHARACTERS = 3_000_000;

export interface Pages {
  /** What is shown, as one page. */
  readonly shown: TranscriptResult | undefined;
  /** Shows the end, or the messages around a number; what is shown already stays. */
  load(position?: number): Promise<TranscriptResult>;
  earlier(): Promise<TranscriptResult>;
  later(): Promise<TranscriptResult>;
  /** What may have changed is asked for again. */
  refresh(): Promise<TranscriptResult>;
}

/** `scope` says which conversation, each time anew: it may get another name. One of a program has no other request. */
export function pages(nexus: Nexus, scope: () => Params | SourceParams): Pages {
  let shown: TranscriptResult | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const ask: Ask = (where) => {
    const params = { ...scope(), limit: PAGE, ...where };
    return "program" in params
      ? nexus.request("nexus/conversation/transcript", params)
      : nexus.request("nexus/session/transcript", params);
  };

  /** One after the other: each is about what the one before it left. */
  function next(work: () => Promise<TranscriptResult>): Promise<TranscriptResult> {
    const made = last.then(work, work).then((page) => {
      shown = page;
      return page;
    });
    last = made.catch(() => undefined);
    return made;
  }

  return {
    get shown() {
      return shown;
    },
    load: (position) =>
      next(async () => {
        if (position === undefined) {
          return shown && shown.end === shown.messages ? renewed(ask, shown) : ask({});
        }
        if (shown && position >= shown.first && position < shown.end) return shown;
        return around(ask, position);
      }),
    earlier: () =>
      next(async () => {
        if (!shown) return ask({});
        return shown.first > 0 ? bounded(joined(await ask({ before: shown.first }), shown), "end") : shown;
      }),
    later: () =>
      next(async () => {
        if (!shown) return ask({});
        return shown.end < shown.messages ? bounded(joined(shown, await ask({ first: shown.end })), "first") : shown;
      }),
    refresh: () => next(async () => (shown ? renewed(ask, shown) : ask({}))),
  };
}

async function around(ask: Ask, position: number): Promise<TranscriptResult> {
  const before = await ask({ before: position + 1, limit: PAGE / 2 });
  if (before.end >= before.messages) return before;
  return joined(before, await ask({ first: before.end, limit: PAGE / 2 }));
}

async function renewed(ask: Ask, shown: TranscriptResult): Promise<TranscriptResult> {
  const isAtEnd = shown.end === shown.messages;
  const news = await ask(isAtEnd ? { first: shown.end } : { before: 0, limit: 1 });
  if (news.thread !== shown.thread || news.messages < shown.messages) return ask({}); // cleared, deleted, another one
  if (news.counter.name !== shown.counter.name) return counted(ask, shown);
  if (!isAtEnd) return { ...news, first: shown.first, end: shown.end, turns: shown.turns };
  return bounded(joined(shown, news), "first");
}

/** The same messages as another model counts them. */
async function counted(ask: Ask, shown: TranscriptResult): Promise<TranscriptResult> {
  let page = await ask({ first: shown.first });
  while (page.end < shown.end) {
    const more = await ask({ first: page.end });
    if (more.end <= page.end) break;
    page = joined(page, more);
  }
  return page;
}

/** Two pages that follow each other; what is said of the whole is the newer answer's. */
export function joined(one: TranscriptResult, other: TranscriptResult): TranscriptResult {
  const newer = other.messages >= one.messages ? other : one;
  const turns = [...one.turns];
  for (const turn of other.turns) {
    const known = turns.at(-1);
    if (known?.seq !== turn.seq) {
      if (!known || known.seq < turn.seq) turns.push(turn);
      continue;
    }
    const end = (known.messages.at(-1)?.position ?? -1) + 1;
    const added = turn.messages.filter((message) => message.position >= end);
    turns[turns.length - 1] = { ...known, messages: [...known.messages, ...added] };
  }
  return { ...newer, first: one.first, end: Math.max(one.end, other.end), turns };
}

/** The page without what is too much at its `first` messages or at its `end`; one message at least stays. */
export function bounded(page: TranscriptResult, from: "first" | "end", most = MOST_CHARACTERS): TranscriptResult {
  const messages = page.turns.flatMap((turn) => turn.messages);
  let total = messages.reduce((sum, message) => sum + sizeOf(message), 0);
  let [low, high] = [0, messages.length];
  while (total > most && high - low > 1) {
    const dropped = messages[from === "first" ? low++ : --high];
    total -= dropped ? sizeOf(dropped) : 0;
  }
  const first = low > 0 ? page.first + low : page.first;
  const end = high < messages.length ? page.first + high : page.end;
  if (first === page.first && end === page.end) return page;
  // a turn without messages belongs to what is before it
  const isInside = (turn: TranscriptTurn) => (turn.count > 0 ? turn.messages.length > 0 : turn.first > first);
  const turns = page.turns
    .map((turn) => ({ ...turn, messages: turn.messages.filter((one) => one.position >= first && one.position < end) }))
    .filter((turn) => isInside(turn) && turn.first <= end);
  return { ...page, turns, first, end };
}

function sizeOf(message: TranscriptMessage): number {
  return (message.calls ?? []).reduce((sum, call) => sum + call.arguments.length, message.text.length);
}
