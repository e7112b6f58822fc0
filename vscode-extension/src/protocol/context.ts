/** What a context holds and costs: assembled, previewed, counted, its layers and settings. */
import type { SpawnParams } from "./agents";
import type { Receipt } from "./sessions";
import type { Counter, Freshness, Json, Location, Message, Problem, Range } from "./shapes";

export type Category = "system" | "tools" | "history" | "memory" | "event";

export interface UsageRow {
  category: Category;
  label: string;
  tokens: number;
  exact: boolean;
  source?: Location;
  /** Of a row of the history: number of the first message that it is about. */
  message?: number;
}

/** The system prompt by kind of text: the user's instructions, skills, MCP servers and tools, Nexus's own text. */
export interface UsagePart {
  part: "instructions" | "skills" | "tools" | "nexus";
  tokens: number;
  exact: boolean;
}

/** What a context costs, in tokens. The rows sum to `total`, the parts to the rows of the category `system`. */
export interface TokenUsage {
  model: string;
  limit: number;
  limitKnown: boolean;
  reserved: number;
  available: number;
  total: number;
  remaining: number;
  /** `total` as a share of `available`, in percent, to one decimal. */
  percent: number;
  over: boolean;
  counter: Counter;
  rows: UsageRow[];
  /** Each kind of text once; absent from older servers. */
  parts?: UsagePart[];
  /** As `percent`, had nothing been cut; of a conversation's usage. */
  wantedPercent?: number;
  /** Messages that are not sent any more, where there are any. */
  removedMessages?: number;
  /** Why it is time to compact, where it is. */
  compactionReason?: string;
  /** What the next request could reuse of the last one, once one was made. */
  cache?: CacheReport;
}

export interface Used {
  system: number;
  tools: number;
  history: number;
  memory: number;
  event: number;
  total: number;
}

export interface TokenBudget {
  modelLimit: number;
  reserveResponse: number;
  reserveTools: number;
  available: number;
  used: Used;
  remaining: number;
}

/** What a provider can reuse of the request before, and what broke it. */
export interface CacheReport {
  reusedTokens: number;
  prefixTokens: number;
  broke?: { category: string; label: string; tokens: number; costUsd?: number; source?: Location };
}

/** An instruction file that the editor attaches to a turn by itself; without text the daemon reads it. */
export interface Attachment {
  uri: string;
  text?: string | null;
}

/** What a client knows of its next turn before the user has said anything. */
export interface NextTurnParams {
  options?: AssembleOptions | null;
  attachments?: Attachment[];
  files?: string[];
}

/** What became of an instruction file that only a turn is sent with. */
export interface SentInstructions {
  uri: string;
  label: string;
  status: "sent" | "shortened" | "in-prompt" | "no-room" | "unreadable" | "not-applied";
  /** The globs of a file for some files only, and the file of the turn that fits. */
  appliesTo?: string;
  file?: string;
}

export interface Metadata {
  tokens: Record<string, number>;
  stablePrefixTokens: number;
  prefixHash: string;
  wantedPercent: number;
  shouldCompact: boolean;
  compactionReason?: string;
  compaction?: { id?: string; reached: boolean; receipt?: Receipt; problem?: string };
  truncated: boolean;
  truncation?: {
    strategy: string;
    removedMessages: number;
    removedTokens: number;
    originalTokens?: number;
    finalTokens?: number;
    keptFromStart?: number;
    identifierTokens?: number;
    shortened?: number[];
  };
  cache: CacheReport;
  toolsLeftOut?: Record<string, string>;
  repairs?: { kind: string; text: string; index?: number; toolCallId?: string; given?: string; sent?: string }[];
  unsent?: string[];
  activeSkills: string[];
  attachments?: SentInstructions[];
  instructions?: SentInstructions[];
  memory?: {
    included: string[];
    dropped: string[];
    tokens: number;
    shortened?: string[];
    messages?: string[];
    failures?: string[];
  };
  contextJson: Record<string, Json>;
  cached: boolean;
  assemblyMs: number;
}

export interface AssembleOptions {
  model?: string | null;
  parameters?: Record<string, Json>;
  additionalSystemPrompt?: string | null;
  additionalTools?: Record<string, Json>[];
  disabledTools?: string[];
  maxContextTokens?: number | null;
  reserveTokens?: number | null;
  truncationStrategy?: string | null;
  skipSkills?: boolean;
  skillFilter?: string[] | null;
  skills?: string[];
  sandbox?: boolean | null;
  permissions?: string[] | null;
  memoryTools?: boolean;
}

export interface AssembledContext {
  revision: number;
  workspaceFolder: string;
  session: string;
  systemPrompt: string;
  history: Message[];
  currentMessage: Message | null;
  tools: Record<string, Json>[];
  parameters: Record<string, { value: Json; origin: string }>;
  model: string;
  provider: string;
  usage: TokenUsage;
  tokenBudget: TokenBudget;
  permissions: Record<string, Json>;
  toolset: string;
  role: string;
  workspacePath: string;
  metadata: Metadata;
  problems: Problem[];
  agent?: string;
  request?: Record<string, Json>;
  parentTurn?: string;
  sourceEvent?: string;
}

export interface Fragment {
  section: string;
  layer: string | null;
  title: string;
  range: Range;
  source: Location | null;
  tokens: number;
  verbatim: boolean;
}

export interface Preview {
  revision: number;
  text: string;
  fragments: Fragment[];
  tokens: number;
}

/** An agent that is not spawned: what it would see. */
export type ViewAs = Partial<Omit<SpawnParams, "workspaceFolder">>;

export interface LayerFile {
  kind: string;
  uri: string;
  status:
    | "loaded"
    | "missing"
    | "stale"
    | "invalid"
    | "unreadable"
    | "too-large"
    | "shadowed"
    | "excluded"
    | "conditional";
  tokens?: number;
  /** The globs of a conditional file: it is sent with turns about files that fit. */
  appliesTo?: string;
}

export interface Layer {
  name: string;
  path: string;
  files: LayerFile[];
  /** Of its files with what they import, in the prompt of the agent that was asked for; absent from older servers. */
  tokens?: number;
}

export interface Layers {
  revision: number;
  layers: Layer[];
  skipped: { path: string; reason: string }[];
  problems: Problem[];
  /** Absent from older servers. */
  counter?: Counter;
  freshness?: Freshness;
}

export interface Provenance extends Location {
  layer: string;
  value: Json;
  wins: boolean;
  ignored?: boolean;
}

export interface McpServer extends Location {
  name: string;
  type: "stdio" | "http" | "sse";
  origin: string;
  enabled: boolean;
  shadowedBy?: string;
}

export interface EffectiveConfig {
  revision: number;
  config: Record<string, Json>;
  provenance: Record<string, Provenance[]>;
  mcpServers: McpServer[];
}
