/** What the daemon says of itself, and counts. */
import type { Freshness, Json, Problem } from "./shapes";

export interface FolderStatus {
  uri: string;
  name: string;
  revision: number;
  layers: number;
  errors: number;
  warnings: number;
  sessions: string[];
  freshness?: Freshness;
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
