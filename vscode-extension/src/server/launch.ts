/** The program that serves a window, alone or as the daemon of all windows. */
import type { Run } from "./programs";
import type { Version } from "./versions";

export interface Launch {
  readonly command: string;
  /** What comes before the arguments of `nexus`. */
  readonly prefix: readonly string[];
  /** Whether the window uses the daemon of all windows. */
  readonly isShared: boolean;
  readonly from: "setting" | "path" | "managed";
  readonly version: Version;
}

const STOP_MS = 30_000; // a daemon that hangs is killed after half of it

/** The arguments with which the program serves a window. */
export function serveArgs({ prefix, isShared }: Pick<Launch, "prefix" | "isShared">): string[] {
  return [...prefix, "serve", ...(isShared ? ["--remote=auto"] : [])];
}

/** Ends the daemon of all windows, if one runs; the next window that needs it starts it. Never rejects. */
export async function stopShared(
  { command, prefix }: Pick<Launch, "command" | "prefix">,
  run: Run,
  log: (line: string) => void,
): Promise<void> {
  const printed = await run(command, [...prefix, "stop", "--force"], { timeoutMs: STOP_MS });
  const failure = printed.err.trim() || "it does not say why";
  log(printed.code === 0 ? printed.out.trim() : `The daemon of all windows could not be ended: ${failure}`);
}
