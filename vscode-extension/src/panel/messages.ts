/** What the panel's web page and the extension say to each other. */
import type { ActionId, WindowModel } from "./window";

export interface ToPage {
  readonly type: "show";
  readonly model: WindowModel;
}

export type FromPage =
  | { readonly type: "ready" }
  | { readonly type: "act"; readonly id: ActionId; readonly server?: string }
  | { readonly type: "reveal"; readonly part: string }
  | { readonly type: "open"; readonly uri: string; readonly line: number }
  | { readonly type: "width"; readonly narrow: boolean };

/** A message of the page; undefined: it is none, and nothing is done. */
export function fromPage(message: unknown): FromPage | undefined {
  if (typeof message !== "object" || message === null) return undefined;
  const { type, id, server, part, uri, line, narrow } = message as Record<string, unknown>;
  if (type === "ready") return { type };
  if (type === "act" && typeof id === "string") {
    return { type, id: id as ActionId, ...(typeof server === "string" ? { server } : {}) };
  }
  if (type === "reveal" && typeof part === "string") return { type, part };
  if (type === "open" && typeof uri === "string" && typeof line === "number") return { type, uri, line };
  if (type === "width" && typeof narrow === "boolean") return { type, narrow };
  return undefined;
}
