/** Processes that the tests start: found and ended by id, never by name. Linux: what runs is read from /proc. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const PATIENCE_MS = 3_000;

export interface Process {
  readonly pid: number;
  readonly command: readonly string[];
}

/** Starts a program in a process group of its own; what it writes goes to a file. */
export function start(
  command: string,
  args: readonly string[],
  options: { env: NodeJS.ProcessEnv; log: string; cwd: string },
): ChildProcess {
  const log = openSync(options.log, "a");
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ["ignore", log, log],
  });
  // Ctrl-C ends this process without the tests' own cleaning up
  process.once("exit", () => child.exitCode === null && child.pid !== undefined && signal(-child.pid, "SIGKILL"));
  return child;
}

/** Ends a process and all that came of it, also what has left its process group. */
export async function end(pid: number): Promise<void> {
  const all = [pid, ...descendants(pid).map((child) => child.pid)];
  for (const one of all) signal(one, "SIGTERM");
  const deadline = Date.now() + PATIENCE_MS;
  while (all.some(alive) && Date.now() < deadline) await sleep(50);
  for (const one of all.filter(alive)) signal(one, "SIGKILL");
}

/** What a process has started, directly and through others. */
export function descendants(pid: number): Process[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    const parent = /^\d+$/.test(entry) ? parentOf(Number(entry)) : undefined;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const found: number[] = [];
  const open = [pid];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const own = children.get(next) ?? [];
    found.push(...own);
    open.push(...own);
  }
  return found.map((child) => ({ pid: child, command: commandOf(child) }));
}

/** The servers of windows among what a process has started: `… nexus serve …`. They forward to the shared daemon. */
export function servers(pid: number): Process[] {
  return descendants(pid).filter(
    ({ command }) => command.includes("serve") && command.some((word) => /(^|\/)nexus(_daemon)?(\.exe)?$/.test(word)),
  );
}

/** The shared daemons of a runtime directory: detached, so that they are nobody's descendants. */
export function sharedDaemons(runtime: string): Process[] {
  const directory = path.join(runtime, "nexus");
  const locks = existsSync(directory) ? readdirSync(directory).filter((name) => name.endsWith(".lock")) : [];
  const pids = locks.map((name) => Number(readFileSync(path.join(directory, name), "utf8")));
  return pids
    .filter((pid) => pid > 0 && alive(pid))
    .map((pid) => ({ pid, command: commandOf(pid) }))
    .filter(({ pid }) => readFileSync(`/proc/${pid}/comm`, "utf8") === "nexusd\n");
}

export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0] !== "Z";
  } catch {
    return false;
  }
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // gone already
  }
}

function parentOf(pid: number): number | undefined {
  try {
    // pid (command, which may hold spaces and brackets) state parent …
    return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[1]);
  } catch {
    return undefined;
  }
}

function commandOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").filter(Boolean);
  } catch {
    return [];
  }
}
