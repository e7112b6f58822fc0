/** Live agents, and what waits for them. */
import type { TokenUsage } from "./context";
import type { InFolder, Json } from "./shapes";

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
