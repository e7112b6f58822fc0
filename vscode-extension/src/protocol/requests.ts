/** Every request of the daemon: its parameters and result. */
import type { AgentDetails, AgentInfo, AgentMessage, SpawnParams } from "./agents";
import type {
  AssembledContext,
  AssembleOptions,
  Attachment,
  EffectiveConfig,
  Layers,
  NextTurnParams,
  Preview,
  TokenUsage,
  ViewAs,
} from "./context";
import type { Status, TokenCounts } from "./server";
import type { Appended, Receipt, SearchHit, SessionInfo, SessionPlace } from "./sessions";
import type { InFolder, InSession, Json, Message } from "./shapes";
import type { TranscriptPage } from "./transcript";

/** Method → its parameters and result. */
export interface Requests {
  "nexus/context/assemble": {
    params: InSession & {
      agent?: string | null;
      message?: string | Json[] | Message | null;
      event?: Record<string, Json> | null;
      format?: "neutral" | "openai" | "anthropic";
      options?: AssembleOptions | null;
      attachments?: Attachment[];
      files?: string[];
    };
    result: AssembledContext;
  };
  "nexus/context/preview": { params: InFolder & { agent?: string | null; viewAs?: ViewAs | null }; result: Preview };
  "nexus/context/usage": {
    params: InSession & { agent?: string | null; nextTurn?: NextTurnParams | null };
    result: TokenUsage;
  };
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
  "nexus/session/transcript": {
    params: InSession & { first?: number | null; before?: number | null; limit?: number; thread?: string | null };
    result: TranscriptPage;
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
  "nexus/session/receipt": {
    params: InSession & { compaction?: string | null };
    result: { session: string; receipt: Receipt; inForce: boolean };
  };
  "nexus/session/export": {
    params: InSession & { format?: "jsonl" | "markdown" };
    result: { session: string; format: string; text: string };
  };
  "nexus/session/search": {
    params: { query: string; workspaceFolder?: string | null; session?: string | null; limit?: number };
    result: { hits: SearchHit[] };
  };
  "nexus/session/focus": {
    params: InSession;
    result: { session: string; model?: string; maxContextTokens?: number };
  };
  "nexus/model/pick": {
    params: InSession & { model?: string | null; maxContextTokens?: number | null; memoryTools?: boolean | null };
    result: { session: string; usage: TokenUsage; persists?: boolean; problem?: string };
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
