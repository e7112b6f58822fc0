/** The requests and notifications of the daemon, as docs/protocol.md says them. A field with `?` may be left out. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

export interface Location {
  uri: string;
  range: Range;
}

export interface ToolCall {
  id: string;
  name: string;
  arguments?: Json;
}

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content?: string | Json[] | null;
  toolCalls?: ToolCall[];
  toolCallId?: string;
  name?: string;
  meta?: Json;
  timestamp?: string | number;
  tokens?: number;
}

export interface Problem extends Location {
  /** 1 error, 2 warning, 3 information, 4 hint. */
  severity: 1 | 2 | 3 | 4;
  code: string;
  message: string;
  fix?: { title: string; edits: { range: Range; newText: string }[] };
}

export interface Counter {
  name: string;
  exact: boolean;
}

export type Category = "system" | "tools" | "history" | "memory" | "event";

export interface UsageRow {
  category: Category;
  label: string;
  tokens: number;
  exact: boolean;
  source?: Location;
}

/** What a context costs, in tokens. The rows sum to `total`. */
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
  /** What the next request could reuse of the last one, once one was made. */
  cache?: CacheState;
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

export interface Lost {
  paths: string[];
  commands: string[];
  identifiers: string[];
  errors: string[];
  instructions: string[];
  decisions: string[];
  counts: Record<string, number>;
}

/** What a compaction did. */
export interface Receipt {
  id: string;
  reason: string;
  summarizer: string;
  replacedMessages: number;
  tokensBefore: number;
  tokensAfter: number;
  created: string;
  lost: Lost;
  failures: string[];
  /** The model that wrote it, where the client names it. */
  model?: string;
}

/** What a provider can reuse of the request before, and what broke it. */
export interface CacheState {
  reusedTokens: number;
  prefixTokens: number;
  broke?: { category: string; label: string; tokens: number; costUsd?: number; source?: Location };
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
  cache: CacheState;
  toolsLeftOut?: Record<string, string>;
  repairs?: { kind: string; text: string; index?: number; toolCallId?: string; given?: string; sent?: string }[];
  unsent?: string[];
  activeSkills: string[];
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
  status: "loaded" | "missing" | "stale" | "invalid" | "unreadable" | "too-large" | "shadowed" | "excluded";
  tokens?: number;
}

export interface Layer {
  name: string;
  path: string;
  files: LayerFile[];
}

export interface Layers {
  revision: number;
  layers: Layer[];
  skipped: { path: string; reason: string }[];
  problems: Problem[];
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

export interface SessionPlace {
  session: string;
  thread: string;
}

export interface SessionInfo {
  session: string;
  thread: string;
  turns: number;
  messages: number;
  tokens: number;
  created: string;
  updated: string;
  agent?: string;
  forkedFrom?: string;
}

export interface SearchHit {
  workspaceFolder: string;
  session: string;
  turn: string;
  seq: number;
  position: number;
  role: string;
  snippet: string;
  created: string;
}

export interface Appended {
  session: string;
  turn: string;
  count: number;
  usage: TokenUsage;
  forked?: boolean;
  persists?: boolean;
}

export interface AgentMessage {
  id: string;
  source: string;
  target: string;
  content: string;
  priority: number;
  created: string;
  ttlSeconds?: number;
  node?: string;
  task?: string;
  metadata?: Json;
  session?: string;
}

export type Role = "worker" | "manager" | "unified";

/** A live agent of a folder. */
export interface AgentInfo {
  agentId: string;
  parent?: string | null;
  cwd: string;
  role: string;
  task?: string | null;
  depth: number;
  session: string;
  usage: TokenUsage;
  /** What is wrong since it was started. */
  notice?: string;
}

export interface SpawnParams extends InFolder {
  agentId: string;
  /** A path, absolute or from the folder, or a URI; none: what the settings say of the agent. */
  cwd?: string;
  role?: Role;
  task?: string;
  parent?: string;
  systemPrompt?: string;
  model?: string;
  tools?: string[];
  /** `level`, `allow` and `deny`, or only the patterns that are allowed. */
  permissions?: string[] | Record<string, Json>;
  parameters?: Record<string, Json>;
}

/** A live agent, and what it was granted. */
export interface AgentDetails extends AgentInfo {
  model?: string;
  systemPrompt?: string;
  tools?: string[];
  permissions: Record<string, Json>;
  parameters: Record<string, Json>;
  children: string[];
}

export interface FolderStatus {
  uri: string;
  name: string;
  revision: number;
  layers: number;
  errors: number;
  warnings: number;
  sessions: string[];
}

export interface Status {
  version: string;
  folders: FolderStatus[];
  sessions: number;
  connections: number;
  caches: Record<string, Json>;
  /** Resident size, in bytes. */
  memory: number;
  /** Seconds since the start. */
  uptime: number;
  ledger: { path: string; persists: boolean; notice: string | null; sessions: number } | null;
}

export interface TokenCounts {
  encoding: string;
  exact: boolean;
  counts: number[];
  total: number;
  problems?: Problem[];
}

export interface InFolder {
  workspaceFolder: string;
}

export interface InSession extends InFolder {
  session?: string;
}

/** Method → its parameters and result. */
export interface Requests {
  "nexus/context/assemble": {
    params: InSession & {
      agent?: string | null;
      message?: string | Json[] | Message | null;
      event?: Record<string, Json> | null;
      format?: "neutral" | "openai" | "anthropic";
      options?: AssembleOptions | null;
    };
    result: AssembledContext;
  };
  "nexus/context/preview": { params: InFolder & { agent?: string | null; viewAs?: ViewAs | null }; result: Preview };
  "nexus/context/usage": { params: InSession & { agent?: string | null }; result: TokenUsage };
  "nexus/context/layers": { params: InFolder & { agent?: string | null }; result: Layers };
  "nexus/config/effective": { params: InFolder & { agent?: string | null }; result: EffectiveConfig };
  "nexus/session/create": { params: InSession & { agent?: string | null }; result: SessionPlace };
  "nexus/session/list": { params: InFolder; result: { sessions: SessionInfo[] } };
  "nexus/session/append": {
    params: InSession & {
      messages: Message[];
      idempotencyKey?: string | null;
      parentTurn?: string | null;
      model?: string | null;
      event?: Record<string, Json> | null;
    };
    result: Appended;
  };
  "nexus/session/messages": {
    params: InSession & { limit?: number | null; before?: number | null };
    result: { session: string; messages: Message[]; before?: number };
  };
  "nexus/session/fork": { params: InSession & { to: string; turn?: string | null }; result: SessionPlace };
  "nexus/session/rename": { params: InSession & { to: string }; result: SessionPlace };
  "nexus/session/clear": { params: InSession; result: { session: string; usage: TokenUsage } };
  "nexus/session/delete": { params: InSession; result: { session: string } };
  "nexus/session/compact": {
    params: InSession & { instructions?: string | null; pins?: (string | number)[]; overflow?: boolean };
    result: { compaction: string; receipt: Receipt; usage: TokenUsage };
  };
  "nexus/session/undoCompaction": {
    params: InSession & { compaction?: string | null };
    result: { session: string; usage: TokenUsage };
  };
  "nexus/session/export": {
    params: InSession & { format?: "jsonl" | "markdown" };
    result: { session: string; format: string; text: string };
  };
  "nexus/session/search": {
    params: { query: string; workspaceFolder?: string | null; session?: string | null; limit?: number };
    result: { hits: SearchHit[] };
  };
  "nexus/memory/query": {
    params: InSession & { tool: string; arguments?: Record<string, Json> | string | null };
    result: { text: string };
  };
  "nexus/agent/spawn": {
    params: SpawnParams;
    result: AgentInfo;
  };
  "nexus/agent/list": { params: InFolder; result: { agents: AgentInfo[] } };
  "nexus/agent/get": { params: InFolder & { agentId: string }; result: AgentDetails };
  "nexus/agent/dispose": { params: InFolder & { agentId: string }; result: { disposed: string[] } };
  "nexus/agent/message": {
    params: InFolder & {
      source: string;
      target: string;
      content: string;
      priority?: number;
      ttlSeconds?: number | null;
      node?: string | null;
      task?: string | null;
      metadata?: Json;
      session?: string | null;
      id?: string | null;
    };
    result: { id: string };
  };
  "nexus/agent/messages": {
    params: InFolder & { agent: string; node?: string | null };
    result: { messages: AgentMessage[] };
  };
  "nexus/tokens/count": {
    params: { texts?: string[]; uris?: string[]; model?: string | null; encoding?: string | null };
    result: TokenCounts;
  };
  "nexus/workspace/init": { params: InFolder; result: { created: string[]; existing: string[] } };
  "nexus/status": { params: Record<string, never>; result: Status };
}

export type ContextReason =
  | "folder"
  | "config"
  | "mcp"
  | "instructions"
  | "layers"
  | "disk"
  | "session"
  | "compaction"
  | "tokens";

/** `usage` is what the session `main` costs now, whichever has changed. */
export interface ContextDidChange extends InFolder {
  revision: number;
  reason: ContextReason | (string & {});
  usage: TokenUsage;
  session?: string;
}

export interface SessionDidChange extends InFolder {
  session: string;
  reason:
    | "created"
    | "appended"
    | "compacted"
    | "undone"
    | "cleared"
    | "renamed"
    | "deleted"
    | "forked"
    | (string & {});
  by: "self" | "other";
  turn?: string;
  former?: string;
}

export interface AgentDidChange extends InFolder {
  reason: "spawned" | "disposed" | "message" | "changed" | (string & {});
  agentId: string;
}

/** The daemon asks the editor's model for a text. */
export interface ModelCompleteParams extends InFolder {
  session?: string;
  purpose: "compaction" | (string & {});
  messages: Message[];
  /** Tokens of the answer. */
  maxTokens?: number;
  model?: string;
}

export interface ModelCompleteResult {
  content: string;
  model?: string;
}
