/**
 * A session of another assistant that runs now: what its window holds, and what its cache, compactions and tools cost.
 * Pure.
 *
 * 1. Every figure is the daemon's. Prices that the program does not state are Nexus's own sum, and said to be.
 * 2. When the cache goes cold is counted down by the page.
 */
import type { AssistantCacheMiss, AssistantDropped, AssistantSessionInfo, AssistantSessionResult } from "../protocol";
import type { Node } from "./node";
import type { Fact, Segment } from "./window";
import { count, dollars, nameOf, percent, plain, plural, share, tokensOf, when } from "./wording";

interface Kind {
  readonly title: string;
  readonly holds: string;
  readonly colour: string;
}

/** The kinds of text in a window, in the order in which they are shown; a category without one is `other`. */
const KINDS: Readonly<Record<string, Kind>> = {
  system: {
    title: "Its own prompt",
    holds: "The program's system prompt, and what else its transcript does not have",
    colour: "nexus.ownText",
  },
  tools: { title: "Tools", holds: "Definitions of tools", colour: "nexus.tools" },
  instructions: { title: "Instructions", holds: "Instruction files of the folder", colour: "nexus.instructions" },
  user: { title: "Your messages", holds: "What you wrote", colour: "nexus.message" },
  answers: { title: "Answers", holds: "What the model wrote and thought", colour: "nexus.history" },
  results: { title: "Tool results", holds: "Calls of tools, and their results", colour: "nexus.memory" },
  attachments: { title: "Attachments", holds: "What the program attached", colour: "nexus.skills" },
  other: { title: "Summaries", holds: "Summaries of earlier messages", colour: "descriptionForeground" },
};
const KIND_OF: Readonly<Record<string, string>> = {
  thinking: "answers",
  calls: "results",
  summary: "other",
  earlier: "other",
};

const CAUSES: Readonly<Record<string, string>> = {
  idle: "the cache had gone cold",
  model: "another model",
  compaction: "a compaction",
  version: "another version of the program",
  instructions: "an instruction file changed",
  tools: "other tools, or another prompt",
  rewritten: "the beginning changed",
};

const MINUTE_S = 60;
const MOST_TOOLS = 4;
const LONGEST_QUOTE = 80;

/** Segments of the bar; widths are of the window and of what is used. */
export function liveSegments({ context }: AssistantSessionResult, base: number): Segment[] {
  const sums = new Map<string, number>();
  for (const { category, tokens } of context.parts) {
    const kind = KIND_OF[category] ?? (category in KINDS ? category : "other");
    sums.set(kind, (sums.get(kind) ?? 0) + tokens);
  }
  const available = { available: context.size ?? base };
  return Object.entries(KINDS).flatMap(([kind, { title, holds, colour }]) => {
    const tokens = sums.get(kind) ?? 0;
    if (tokens === 0) return [];
    const ofAvailable = share(tokens, available);
    return {
      part: kind === "system" ? "nexus" : kind,
      title,
      holds,
      colour,
      tokens: `≈ ${count(tokens)}`,
      share: ofAvailable,
      widths: { window: (100 * tokens) / base, used: (100 * tokens) / Math.max(context.used, 1) },
      spoken: `${title}: ${tokensOf(tokens, false)}, ${ofAvailable}`,
    };
  });
}

/** What the session does and costs. */
export function liveFacts(report: AssistantSessionResult, now: Date): Fact[] {
  return [
    sessionFact(report),
    ...cacheFacts(report, now),
    ...compactionFacts(report, now),
    ...costFacts(report),
    ...agentFacts(report),
    ...unreadFacts(report),
  ];
}

function sessionFact({ session, version, requests }: AssistantSessionResult): Fact {
  const facts = [plural(requests, "request"), ...(version === undefined ? [] : [`version ${version}`])];
  return { label: "Session", text: session.title ?? session.id, detail: facts.join(", "), tone: "plain" };
}

function cacheFacts({ session, cache, misses, missedTokens, missedUsd }: AssistantSessionResult, now: Date): Fact[] {
  const facts: Fact[] = [];
  const { last } = session;
  const sent = last ? last.fresh + last.cacheRead + last.cacheWrite : 0;
  if (last && sent > 0) {
    const filled = (100 * last.cacheRead) / sent;
    const next = cache && `The next turn sends ${plural(cache.nextTokens, "token")}`;
    const prices =
      cache?.coldUsd !== undefined && cache.warmUsd !== undefined
        ? `: ${dollars(cache.warmUsd)} with a warm cache, ${dollars(cache.coldUsd)} with a cold one.`
        : ".";
    const until = cache?.coldAt === undefined ? undefined : 1_000 * cache.coldAt;
    const read = `${percent(filled)} of the last request was cached`;
    facts.push({
      label: "Cache",
      text: until !== undefined && until <= now.getTime() ? `${read}; now cold` : read,
      ...(next === undefined ? {} : { detail: `${next}${prices}` }),
      tone: until !== undefined && until <= now.getTime() ? "warning" : "good",
      filled,
      ...(until === undefined ? {} : { countdown: { until, before: `${read}; cold in`, after: `${read}; now cold` } }),
    });
  }
  const miss = misses.findLast(({ cause }) => cause !== "first");
  if (miss) {
    const all = missedUsd === undefined ? "" : `, ${dollars(missedUsd)}`;
    facts.push({
      label: "Cache miss",
      text: `${when(new Date(1_000 * miss.at).toISOString(), now)}: ${causeOf(miss)}`,
      detail: `${plural(miss.tokens, "token")} written again. All misses: ${plural(missedTokens, "token")}${all}.`,
      tone: "warning",
    });
  }
  return facts;
}

function causeOf({ cause, detail, idleSeconds }: AssistantCacheMiss): string {
  const says = CAUSES[cause] ?? cause;
  if (cause === "idle" && idleSeconds !== undefined) {
    return `${says} after ${plural(Math.round(idleSeconds / MINUTE_S), "minute")}`;
  }
  return detail ? `${says} (${cause === "instructions" ? nameOf(detail) : detail})` : says;
}

function compactionFacts({ compactions }: AssistantSessionResult, now: Date): Fact[] {
  const last = compactions.at(-1);
  if (!last) return [];
  const sizes =
    last.before === undefined || last.after === undefined
      ? ""
      : `: ${count(last.before)} → ${count(last.after)} tokens`;
  const trigger = last.trigger === undefined ? "" : ` (${last.trigger})`;
  return [
    {
      label: "Compaction",
      text: `${when(new Date(1_000 * last.at).toISOString(), now)}${trigger}${sizes}`,
      ...(last.dropped ? { detail: lossText(last.dropped) } : {}),
      tone: "plain",
    },
  ];
}

/** What was in the window before and is nowhere after it. */
export function lossText({ counts, instructions }: AssistantDropped): string {
  const lost = Object.entries(counts).filter(([, number]) => number > 0);
  if (lost.length === 0) return "Nothing that matters was dropped.";
  const names = lost.map(([kind, number]) => plural(number, kind.replace(/s$/, ""))).join(", ");
  const [first] = instructions;
  const quote =
    first === undefined
      ? ""
      : `, such as “${first.length > LONGEST_QUOTE ? `${first.slice(0, LONGEST_QUOTE)}…` : first}”`;
  return `Dropped: ${names}${quote}.`;
}

function costFacts({ session, costOrigin, tools }: AssistantSessionResult): Fact[] {
  if (session.costUsd === undefined && tools.length === 0) return [];
  const named = tools.slice(0, MOST_TOOLS).map(({ tool, server, costUsd, tokens, calls }) => {
    const name = server === undefined ? tool : `${server}: ${tool}`;
    return `${name} ${costUsd === undefined ? tokensOf(tokens, false) : dollars(costUsd)} (${plural(calls, "call")})`;
  });
  const rest = tools.length > MOST_TOOLS ? [`${plural(tools.length - MOST_TOOLS, "other tool")}`] : [];
  const origin = costOrigin === "program" ? "" : ", by the prices that Nexus knows";
  return [
    {
      label: "Cost",
      text:
        session.costUsd === undefined
          ? "not known"
          : `${session.costAtLeast ? "at least " : ""}${dollars(session.costUsd)}${origin}`,
      ...(named.length ? { detail: [...named, ...rest].join(" · ") } : {}),
      tone: "plain",
    },
  ];
}

function agentFacts({ agents }: AssistantSessionResult): Fact[] {
  if (agents.length === 0) return [];
  const tokens = agents.reduce(
    (sum, { tokens: { fresh, cacheRead, cacheWrite, output } }) => sum + fresh + cacheRead + cacheWrite + output,
    0,
  );
  const names = agents.slice(0, MOST_TOOLS).map(({ title, id }) => title ?? id);
  return [
    {
      label: "Sub-agents",
      text: `${count(agents.length)}, ${plural(tokens, "token")}`,
      detail: names.join(" · "),
      tone: "plain",
    },
  ];
}

/** What of its file is not part of the figures. */
function unreadFacts({
  unread = {},
  damagedLines = 0,
  longLines = 0,
  skippedBytes = 0,
}: AssistantSessionResult): Fact[] {
  const kinds = Object.entries(unread).map(([kind, number]) => `${kind} (${count(number)})`);
  const parts = [
    ...(kinds.length ? [`records of unknown kinds: ${kinds.join(", ")}`] : []),
    ...(damagedLines ? [`${plural(damagedLines, "damaged line")}`] : []),
    ...(longLines ? [`${plural(longLines, "line")} that is too long`] : []),
    ...(skippedBytes ? [`${count(Math.round(skippedBytes / 1e6))} MB at its beginning`] : []),
  ];
  return parts.length === 0 ? [] : [{ label: "Not read", text: parts.join("; "), tone: "plain" }];
}

/** Sessions that run now, for the list of conversations: a click shows that assistant's window. */
export function liveNodes(
  sessions: readonly AssistantSessionInfo[],
  { titles, viewed, now }: { titles: ReadonlyMap<string, string>; viewed: string | undefined; now: Date },
): Node[] {
  return sessions
    .filter(({ parent }) => parent === undefined)
    .map((session) => {
      const { assistant, id, title, usage, updated, model } = session;
      const name = titles.get(assistant) ?? assistant;
      const used = usage ? [`${count(usage.total)} · ${percent(usage.percent)}`] : [];
      const label = title ?? id;
      const description = [name, ...used, when(updated, now)].filter(Boolean).join(" · ");
      return {
        id: `live:${assistant}:${id}`,
        label,
        description,
        ...(usage ? { figure: count(usage.total) } : {}),
        tooltip: [`**${plain(name)}**`, plain(label), plain([model, ...used].filter(Boolean).join(" · "))].join("\n\n"),
        spoken: `running session of ${name}: ${label}, ${description}`,
        icon: { name: "pulse", ...(assistant === viewed ? { colour: "charts.green" } : {}) },
        context: "assistant.session",
        command: "nexus.chooseView",
        subject: { assistant, program: assistant, conversation: id, title: label },
      } satisfies Node;
    });
}
