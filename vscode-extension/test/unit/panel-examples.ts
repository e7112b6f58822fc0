/** What a real daemon answered: once, kept here; and as `make docs` records it now. */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Requests, TokenUsage, UsageRow } from "../../src/protocol";

type Answers = { readonly [M in keyof Requests]: Requests[M]["result"] };
type Examples = { readonly [M in keyof Requests]: { readonly result: Requests[M]["result"] } };

const recorded = JSON.parse(readFileSync(resolve(__dirname, "panel-recorded.json"), "utf8")) as Answers;
const built = resolve(__dirname, "../../../build/docs/protocol.examples.json");
if (!existsSync(built)) throw new Error(`${built} is missing: run \`make docs\``);
const examples = JSON.parse(readFileSync(built, "utf8")) as { readonly requests: Examples };

export const FOLDER = "file:///home/ana/company/backend/auth-service";

/** An answer that stays as it was recorded. */
export function example<M extends keyof Requests>(method: M): Requests[M]["result"] {
  return structuredClone(recorded[method]);
}

/** The answer of today. */
export function documented<M extends keyof Requests>(method: M): Requests[M]["result"] {
  return structuredClone(examples.requests[method].result);
}

/** The views of a folder. */
export const VIEWS = documented("nexus/view/list");

/** A usage whose figures fit its rows, in a window of 200,000 tokens of which 16,000 are kept free. */
export function usageOf(rows: readonly UsageRow[], more: Partial<TokenUsage> = {}): TokenUsage {
  const total = rows.reduce((sum, row) => sum + row.tokens, 0);
  const available = more.available ?? 184_000;
  return {
    model: "claude-sonnet-4-5",
    limit: 200_000,
    limitKnown: true,
    reserved: 16_000,
    available,
    total,
    remaining: available - total,
    percent: Math.round((1000 * total) / available) / 10,
    over: total > available,
    counter: { name: "o200k_base", exact: true },
    rows: [...rows],
    ...more,
  };
}
