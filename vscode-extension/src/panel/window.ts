/**
 * The context window as a view shows it: bar, legend, thresholds, warnings, cache and last compaction.
 *
 * 1. Every figure is the daemon's; only shares and widths are made here, by dividing.
 * 2. Shares are of what is available, as the daemon's `percent`. Widths are of the whole window, the part
 *    that is kept free for answers included; in the scale `used` they are of what is used.
 * 3. The levels are the daemon's: a notice from 75 %, warnings from 90 % and 95 %.
 * 4. While a server is on its way the figures of the one before stay, and say so.
 */

import type {
  AssistantInfo,
  AssistantReadersResult,
  AssistantSessionInfo,
  AssistantSessionResult,
  EffectiveResult,
  LayersResult,
  ServersResult,
  TokenUsage,
} from "../protocol";
import type { RemedyId } from "../server/remedies";
import { correctionText, totalOf } from "../usage/figures";
import { byPart, type PartName, styleOf } from "../usage/parts";
import { liveFacts, liveSegments } from "./liveSession";
import { type ReadersTable, readersTable } from "./readers";
import { serverFacts, serverRemarks } from "./servers";
import { count, dollars, nameOf, percent, plural, share, tokensOf, withShortPaths } from "./wording";

export type ActionId =
  | RemedyId
  | "openFolder"
  | "start"
  | "help"
  | "init"
  | "compact"
  | "undoCompaction"
  | "check"
  | "config"
  | "retry"
  | "stopViewingAs"
  | "chooseView"
  | "viewRunning"
  | "switchSession"
  | "switchFolder"
  | "pickModel"
  | "rebase"
  | "cacheSource"
  | "showServers"
  | "approveServer"
  | "loginServer"
  | "startServer"
  | "showServerLog";

export interface Action {
  readonly id: ActionId;
  readonly label: string;
  /** The MCP server that it is about. */
  readonly server?: string;
}

/** Instead of the bar: what is missing, and what to do. */
export interface Notice {
  readonly kind: "notice";
  readonly title: string;
  readonly text: string;
  readonly busy: boolean;
  readonly tone: "info" | "error";
  readonly actions: readonly Action[];
}

export interface Segment {
  readonly part: PartName;
  readonly title: string;
  /** What belongs to it, for people. */
  readonly holds: string;
  readonly colour: string;
  readonly tokens: string;
  readonly share: string;
  /** Percent of the bar, by scale. */
  readonly widths: { readonly window: number; readonly used: number };
  readonly spoken: string;
}

export interface Mark {
  /** Percent of the bar in the scale `window`. */
  readonly at: number;
  readonly label: string;
  readonly tone: "plain" | "error";
}

export type Level = "calm" | "notice" | "warning" | "full" | "over";

export interface Remark {
  readonly tone: "info" | "warning" | "error";
  readonly text: string;
  /** Where it is: a link before the text. */
  readonly source?: { readonly label: string; readonly uri: string; readonly line: number };
  readonly action?: Action;
}

export interface Fact {
  readonly label: string;
  readonly text: string;
  readonly detail?: string;
  readonly tone: "good" | "plain" | "warning";
  /** Percent of a small meter. */
  readonly filled?: number;
  /** Until then the text is `before` and the minutes that are left; then it is `after`. Milliseconds since 1970. */
  readonly countdown?: { readonly until: number; readonly before: string; readonly after: string };
  readonly action?: Action;
}

export interface Bar {
  readonly kind: "window";
  readonly folder: string;
  readonly session: string;
  readonly agent?: string;
  /** The title of the assistant that is looked at. */
  readonly assistant?: string;
  /** Why this view is shown. */
  readonly reason?: string;
  /** Who reads which file, beside what is read of this assistant. */
  readonly readers?: ReadersTable;
  readonly model: string;
  readonly used: string;
  readonly of: string;
  readonly percent: string;
  readonly level: Level;
  readonly counter: string;
  readonly segments: readonly Segment[];
  readonly free: { readonly tokens: string; readonly share: string; readonly width: number };
  readonly reserved?: { readonly tokens: string; readonly width: number };
  /** Why the figures are those of before. */
  readonly stale?: string;
  readonly marks: readonly Mark[];
  /** The scale that shows more, unless the user has chosen one. */
  readonly scale: "window" | "used";
  readonly remarks: readonly Remark[];
  readonly facts: readonly Fact[];
  /** One sentence for a screen reader. */
  readonly spoken: string;
}

export type WindowModel = Notice | Bar;

/** What is known of the last compaction of the conversation that is shown. */
export interface LastCompaction {
  readonly undone: boolean;
  /** `12:03`. */
  readonly time: string;
}

/** The assistant whose view is shown. */
export interface ViewedAssistant {
  readonly name: string;
  readonly title: string;
  /** The names of all views in use. */
  readonly inUse: ReadonlySet<string>;
  readonly info?: AssistantInfo | undefined;
  readonly readers?: AssistantReadersResult | undefined;
}

/** A session of another program that runs in the folder. */
export interface RunningSession {
  readonly session: AssistantSessionInfo;
  readonly title: string;
}

export interface WindowGiven {
  readonly folder: { readonly uri: string; readonly name: string };
  readonly session: string;
  readonly agent?: string | undefined;
  readonly assistant?: ViewedAssistant | undefined;
  /** Why this view is shown. */
  readonly reason?: string | undefined;
  /** Path of the user's home directory. */
  readonly home?: string;
  /** Of the viewed assistant's session that runs here. */
  readonly report?: AssistantSessionResult | undefined;
  readonly running?: RunningSession | undefined;
  readonly now?: Date;
  readonly usage: TokenUsage;
  readonly layers?: LayersResult | undefined;
  readonly config?: EffectiveResult | undefined;
  /** The folder's MCP servers. */
  readonly servers?: ServersResult | undefined;
  readonly compaction?: LastCompaction | undefined;
  /** Why the figures may be old. */
  readonly trouble?: string | undefined;
  /** What the server that will bring new ones is doing. */
  readonly stale?: string | undefined;
}

/** Below this, in percent, the bar of the whole window would show next to nothing. */
const LITTLE = 3;

/** How many problems of an assistant's files are remarks. */
const MOST_PROBLEMS = 2;

const NO_MODEL = "No model is set, and none was picked in the chat yet";

/** Where a usage stands, as the daemon's messages have it. */
export function levelOf(usage: Pick<TokenUsage, "over" | "percent" | "corrected">): Level {
  if (usage.over) return "over";
  const used = usage.corrected?.percent ?? usage.percent;
  if (used >= 95) return "full";
  if (used >= 90) return "warning";
  return used >= 75 ? "notice" : "calm";
}

export function windowModel(given: WindowGiven): Bar {
  const { usage } = given;
  const kept = Math.max(usage.limit - usage.available, 0);
  const base = Math.max(usage.limit, usage.total + kept, 1);
  const level = levelOf(usage);
  const total = totalOf(usage);
  const free = Math.max(usage.available - total.tokens, 0);
  const width = (100 * Math.max(usage.remaining, 0)) / base;
  const correction = correctionText(usage);
  const counter = usage.counter.exact ? `exact (${usage.counter.name})` : `an estimate (${usage.counter.name})`;
  return {
    kind: "window",
    folder: given.folder.name,
    session: given.session,
    ...(given.agent === undefined ? {} : { agent: given.agent }),
    ...assistantOf(given),
    ...(given.reason && given.agent === undefined ? { reason: given.reason } : {}),
    model: usage.model || "no model yet",
    used: `${total.exact ? "" : "≈ "}${count(total.tokens)}`,
    of: count(usage.available),
    percent: percent(total.percent),
    level,
    counter: correction === undefined ? counter : `${counter}, the total ${correction}`,
    segments: given.report ? liveSegments(given.report, base) : segmentsOf(usage, base),
    free: { tokens: count(free), share: share(free, usage), width },
    ...(given.stale === undefined ? {} : { stale: `${given.stale || "Starting Nexus"}. The figures are from before.` }),
    ...(kept ? { reserved: { tokens: count(kept), width: (100 * kept) / base } } : {}),
    marks: marksOf(given, base),
    scale: usage.percent < LITTLE ? "used" : "window",
    remarks: remarksOf(given, level),
    facts: factsOf(given),
    spoken: spokenOf(given, level),
  };
}

function assistantOf({ assistant, folder, home }: WindowGiven): Pick<Bar, "assistant" | "readers"> {
  if (!assistant) return {};
  const { name, title, readers, inUse } = assistant;
  return {
    assistant: title,
    ...(readers ? { readers: readersTable(readers, { folder: folder.uri, home, current: name, inUse }) } : {}),
  };
}

function segmentsOf(usage: TokenUsage, base: number): Segment[] {
  return byPart(usage).map(({ part, tokens, exact }) => {
    const { title, holds, colour } = styleOf(part);
    const ofAvailable = share(tokens, usage);
    return {
      part,
      title,
      holds,
      colour,
      tokens: `${exact ? "" : "≈ "}${count(tokens)}`,
      share: ofAvailable,
      widths: { window: (100 * tokens) / base, used: (100 * tokens) / Math.max(usage.total, 1) },
      spoken: `${title}: ${tokensOf(tokens, exact)}, ${ofAvailable}`,
    };
  });
}

function marksOf(given: WindowGiven, base: number): Mark[] {
  const { available, over } = given.usage;
  const threshold = given.assistant ? undefined : thresholdOf(given.config);
  const marks: Mark[] = [];
  if (threshold !== undefined) {
    const label = `The conversation is compacted from ${percent(100 * threshold)} on`;
    marks.push({ at: (100 * threshold * available) / base, label, tone: "plain" });
  }
  if (over) marks.push({ at: (100 * available) / base, label: "All that the model takes", tone: "error" });
  return marks;
}

/** The share of what is available at which a conversation is compacted; undefined: it never is. */
function thresholdOf(config: EffectiveResult | undefined): number | undefined {
  const settings = config?.config.compaction;
  if (!settings || typeof settings !== "object" || Array.isArray(settings)) return undefined;
  return settings.enabled === true && typeof settings.threshold === "number" ? settings.threshold : undefined;
}

function remarksOf(given: WindowGiven, level: Level): Remark[] {
  const { usage } = given;
  const remarks: Remark[] = [];
  const { assistant } = given;
  const compact = assistant ? {} : ({ action: { id: "compact", label: "Compact" } } as const);
  if (given.trouble) {
    remarks.push({ tone: "error", text: given.trouble, action: { id: "retry", label: "Try again" } });
  }
  if (level === "over") {
    remarks.push({
      tone: "error",
      text: `${plural(-usage.remaining, "token")} more than the model takes.`,
      ...compact,
    });
  } else if (usage.removedMessages) {
    remarks.push({ tone: "warning", text: cutText(usage, usage.removedMessages), ...compact });
  } else if (level === "full" || level === "warning") {
    remarks.push({
      tone: "warning",
      text: `${percent(totalOf(usage).percent)} of what the model takes is used.`,
      ...compact,
    });
  }
  if (!usage.limitKnown) {
    remarks.push({
      tone: "warning",
      text: `${usage.model ? `The window of ${usage.model} is not known` : NO_MODEL}; ${count(usage.limit)} tokens are a guess.`,
      ...(assistant ? {} : { action: modelAction(usage) }),
    });
  }
  if (given.running) remarks.push(runningRemark(given.running));
  if (assistant) return [...remarks, ...assistantRemarks(given)];
  const place = { folder: given.folder.uri, home: given.home };
  return [...remarks, ...serverRemarks(given.servers, place), ...layerRemarks(given.layers)];
}

function modelAction({ model }: TokenUsage): Action {
  return model ? { id: "config", label: "Settings" } : { id: "pickModel", label: "Pick Model" };
}

/** What is not sent, and why so much is free beside it: a cut makes room for more than the next turn. */
function cutText(usage: TokenUsage, removed: number): string {
  const cut = `${plural(removed, "message")} of this conversation will not be sent: together with the others ${removed === 1 ? "it is" : "they are"} more than the model takes.`;
  return usage.remaining > 0 ? `${cut} The cut leaves ${plural(usage.remaining, "token")} for the next turns.` : cut;
}

function layerRemarks(layers: LayersResult | undefined): Remark[] {
  if (!layers) return [];
  const remarks: Remark[] = [];
  const errors = layers.problems.filter((problem) => problem.severity === 1).length;
  const warnings = layers.problems.filter((problem) => problem.severity === 2).length;
  if (errors + warnings) {
    const says = [...(errors ? [plural(errors, "error")] : []), ...(warnings ? [plural(warnings, "warning")] : [])];
    remarks.push({
      tone: errors ? "error" : "warning",
      text: `${says.join(" and ")} in the files of the context.`,
      action: { id: "check", label: "Show" },
    });
  }
  const local = layers.layers.find((layer) => layer.name === "local");
  if (!local?.files.some((file) => file.status !== "missing")) {
    remarks.push({
      tone: "info",
      text: "This folder says nothing of its own yet.",
      action: { id: "init", label: "Create .nexus3/" },
    });
  }
  return remarks;
}

function runningRemark({ session, title }: RunningSession): Remark {
  const { usage } = session;
  const used = usage ? `: ${count(usage.total)} of ${plural(usage.limit, "token")}, ${percent(usage.percent)}` : "";
  return {
    tone: "info",
    text: `${title} runs in this folder${used}.`,
    action: { id: "viewRunning", label: "Show" },
  };
}

/** The first problems of an assistant's files, and how many more the Problems view has. */
function assistantRemarks({ layers, folder, home }: WindowGiven): Remark[] {
  const problems = layers?.problems.filter(({ severity }) => severity <= 2) ?? [];
  const remarks = problems.slice(0, MOST_PROBLEMS).map(({ message, uri, range, severity }): Remark => {
    const { line } = range.start;
    return {
      tone: severity === 1 ? "error" : "warning",
      text: withShortPaths(message, { folder: folder.uri, home }),
      source: { label: `${nameOf(uri)}:${line + 1}`, uri, line },
    };
  });
  const rest = problems.length - remarks.length;
  if (rest <= 0) return remarks;
  const action = { id: "check", label: "Show" } as const;
  return [...remarks, { tone: "info", text: `${plural(rest, "more problem")}.`, action }];
}

function assistantFacts({ title, info }: ViewedAssistant, { parts = [] }: TokenUsage): Fact[] {
  const isWhole = parts.some(({ part }) => part === "program");
  const rules =
    info?.verified === "documentation"
      ? `by documentation of ${info.version}`
      : `${info?.version}, by its own requests`;
  return [
    {
      label: "Counted",
      text: `What ${title} sends ${isWhole ? "" : "of files "}with every request`,
      detail: isWhole ? "Its own prompt and tools are an estimate." : "Its own system prompt and tools come on top.",
      tone: "plain",
    },
    ...(info ? [{ label: "Rules", text: `${title} ${rules}`, tone: "plain" } as const] : []),
  ];
}

function factsOf(given: WindowGiven): Fact[] {
  if (given.report) return liveFacts(given.report, given.now ?? new Date());
  if (given.assistant) return assistantFacts(given.assistant, given.usage);
  return [
    ...totalFacts(given),
    ...pendingFacts(given),
    ...cacheFacts(given),
    ...serverFacts(given.servers),
    ...compactionFacts(given),
  ];
}

/** Why the total is another than the sum of the parts. */
function totalFacts({ usage }: WindowGiven): Fact[] {
  const correction = correctionText(usage);
  if (correction === undefined) return [];
  return [
    {
      label: "Total",
      text: `The parts are ${tokensOf(usage.total, usage.counter.exact)}, ${correction}`,
      tone: "plain",
    },
  ];
}

/** What the conversation's next request could reuse of its last; the server knows once it has made one. */
function cacheFacts({ usage: { cache } }: WindowGiven): Fact[] {
  if (!cache) return [{ label: "Cache", text: "No request since the server started", tone: "plain" }];
  const { reusedTokens, prefixTokens, broke } = cache;
  const filled = prefixTokens ? (100 * reusedTokens) / prefixTokens : 0;
  const reused = `${count(reusedTokens)} of ${plural(prefixTokens, "token")} can be reused`;
  if (broke) {
    const cost = broke.costUsd === undefined ? "" : `, about ${dollars(broke.costUsd)}`;
    return [
      {
        label: "Cache",
        text: `Broken: ${broke.label}`,
        detail: `${plural(broke.tokens, "token")} must be read again${cost}. ${reused}.`,
        tone: "warning",
        filled,
        ...(broke.source ? { action: { id: "cacheSource", label: "Show" } as const } : {}),
      },
    ];
  }
  return [{ label: "Cache", text: reused, tone: "good", filled }];
}

/** What changed since prompt and tools were sent. Notes tell it, so that what was sent can be reused. */
function pendingFacts({ usage: { pending } }: WindowGiven): Fact[] {
  if (!pending?.changes.length) return [];
  const { changes, tokens, costUsd, losesThinking } = pending;
  const names = [...new Set(changes.map(({ label }) => label))];
  const cost = costUsd === undefined ? "" : `, about ${dollars(costUsd)}`;
  const thinking = losesThinking ? " Earlier thinking would not be sent any more." : "";
  return [
    {
      label: "Changes",
      text: `Told by a note: ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`,
      detail: `Put into the system prompt now, ${plural(tokens, "token")} must be read again${cost}.${thinking}`,
      tone: "plain",
      action: { id: "rebase", label: "Apply Now" },
    },
  ];
}

function compactionFacts({ compaction }: WindowGiven): Fact[] {
  if (!compaction) return [];
  const { time, undone } = compaction;
  return [
    {
      label: "Compaction",
      text: `${undone ? "Undone" : "Compacted"} at ${time}`,
      tone: "plain",
      ...(undone ? {} : { action: { id: "undoCompaction", label: "Undo" } as const }),
    },
  ];
}

function spokenOf(given: WindowGiven, level: Level): string {
  const { usage, reason } = given;
  const viewed = given.assistant && `${given.assistant.title}${reason ? `: ${reason}` : ""}. `;
  const who = viewed ?? (given.agent === undefined ? "" : `Viewing as ${given.agent}. `);
  const end = { calm: "", notice: "", warning: " Nearly full.", full: " Full.", over: " Over the limit." }[level];
  const total = totalOf(usage);
  return `${who}${tokensOf(total.tokens, total.exact)} of ${count(usage.available)} used, ${percent(total.percent)}.${end}`;
}
