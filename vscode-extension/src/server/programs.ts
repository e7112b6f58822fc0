/** Programs of this machine: where they are, and what they print. No shell is ever used. */
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join, relative, sep } from "node:path";

export interface Printed {
  /** The exit code; null: it could not be started, was ended, or took too long. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
  /** Each line of output as it comes. */
  readonly line?: (text: string) => void;
}

export type Run = (command: string, args: readonly string[], options: RunOptions) => Promise<Printed>;

/** The editor's own variable, which settings may hold. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: the text itself is meant
const FOLDER = "${workspaceFolder}";

/** At most so many characters of each stream are kept, the last ones. */
const KEPT = 64 * 1024;

/** The environment of a program: a Python looks for modules neither where it starts nor where a shell said. */
export function programEnv(): NodeJS.ProcessEnv {
  return { ...process.env, PYTHONPATH: undefined, PYTHONSAFEPATH: "1" };
}

/** Runs a program in the home directory and waits for its end. Never rejects. */
export const run: Run = (command, args, options) =>
  new Promise((resolve) => {
    let out = "";
    let err = "";
    const child = spawn(command, args, {
      cwd: homedir(),
      env: options.env ?? programEnv(),
      stdio: ["ignore", "pipe", "pipe"],
      windowsHide: true,
      timeout: options.timeoutMs,
      killSignal: "SIGKILL",
      ...(options.signal ? { signal: options.signal } : {}),
    });
    const tell = options.line ? byLine(options.line) : undefined;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out = (out + text).slice(-KEPT);
      tell?.(text);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err = (err + text).slice(-KEPT);
      tell?.(text);
    });
    child.on("error", (error) => resolve({ code: null, out, err: err || error.message }));
    child.on("close", (code) => resolve({ code, out, err }));
  });

function byLine(tell: (line: string) => void): (text: string) => void {
  let rest = "";
  return (text) => {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) tell(line);
  };
}

export interface Places {
  /** The directories to look in, in order. */
  readonly path: string;
  readonly windows: boolean;
  /** Directories whose programs are never taken: the folders of a window that is not trusted. */
  readonly refused: readonly string[];
}

/** Every program of that name on the path, first found first. Relative entries of the path do not count. */
export async function onPath(name: string, places: Places): Promise<string[]> {
  const names = places.windows ? [`${name}.exe`] : [name];
  const found: string[] = [];
  for (const directory of places.path.split(delimiter)) {
    if (!isAbsolute(directory) || isInside(directory, places.refused)) continue;
    for (const one of names) {
      const file = join(directory, one);
      if (!found.includes(file) && (await isProgram(file, places.windows))) found.push(file);
    }
  }
  return found;
}

export async function isProgram(file: string, windows: boolean): Promise<boolean> {
  try {
    await access(file, windows ? constants.F_OK : constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** Whether a path is one of these directories or beneath one. */
export function isInside(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => {
    const way = relative(directory, path);
    return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
  });
}

/** A path of the settings: `~` and `${workspaceFolder}` written out; undefined where it is empty. */
export function written(path: string, folder: string | undefined): string | undefined {
  const text = path.trim();
  if (text === "") return undefined;
  const home = text === "~" || /^~[\\/]/.test(text) ? join(homedir(), text.slice(1)) : text;
  return folder === undefined ? home : home.replaceAll(FOLDER, folder);
}
