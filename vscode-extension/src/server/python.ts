/**
 * A Python to install the server with: the setting, the Python extension's choice, the newest on the path.
 *
 * 1. A candidate counts when it runs, is 3.11 or later, and can make virtual environments.
 * 2. Of a virtual environment the Python that it was made with is taken: the project's may be deleted any day.
 * 3. A setting that does not fit is an error, never passed over in silence.
 */
import { isInside, onPath, type Places, type Run, written } from "./programs";
import { SetupError } from "./remedies";
import { atLeast, NEEDED_PYTHON, shown, type Version, versionIn } from "./versions";

export interface Python {
  readonly path: string;
  readonly version: Version;
}

export interface PythonSearch {
  readonly run: Run;
  readonly places: Places;
  /** The setting `nexus.python`. */
  readonly setting: string;
  readonly folder: string | undefined;
  /** The interpreter that the Python extension uses, if there is one. */
  readonly chosen: () => Promise<string | undefined>;
}

const NAMES = ["python3.14", "python3.13", "python3.12", "python3.11", "python3", "python"];
const CHECK_MS = 15_000;
const CHECK =
  "import sys, venv, ensurepip; v = sys.version_info; " +
  "print('%d.%d.%d' % v[:3]); print(getattr(sys, '_base_executable', None) or sys.executable)";

/** Raises SetupError where there is none. */
export async function findPython(search: PythonSearch): Promise<Python> {
  const setting = written(search.setting, search.folder);
  if (setting !== undefined) return fromSetting(setting, search);
  const seen: string[] = [];
  for await (const candidate of candidates(search)) {
    const tried = await tryPython(candidate, search.run);
    if (typeof tried !== "string") return tried;
    seen.push(tried);
  }
  throw new SetupError("no-python", nothing(seen), "getPython", "pythonSetting", "tryAgain");
}

async function fromSetting(path: string, search: PythonSearch): Promise<Python> {
  if (isInside(path, search.places.refused)) {
    const message = `The setting nexus.python names ${path}, which is in this folder, and the folder is not trusted.`;
    throw new SetupError("bad-setting", message, "manageTrust", "pythonSetting");
  }
  const tried = await tryPython({ path, args: [] }, search.run);
  if (typeof tried !== "string") return tried;
  const message = `The setting nexus.python does not fit: ${tried}. Nexus needs Python 3.11 or later.`;
  throw new SetupError("bad-setting", message, "pythonSetting", "getPython", "tryAgain");
}

interface Candidate {
  readonly path: string;
  readonly args: readonly string[];
}

async function* candidates(search: PythonSearch): AsyncGenerator<Candidate> {
  const chosen = await search.chosen();
  if (chosen !== undefined && !isInside(chosen, search.places.refused)) yield { path: chosen, args: [] };
  if (search.places.windows) for (const path of await onPath("py", search.places)) yield { path, args: ["-3"] };
  for (const name of NAMES) for (const path of await onPath(name, search.places)) yield { path, args: [] };
}

/** The Python, or what is wrong with it. */
async function tryPython(candidate: Candidate, run: Run): Promise<Python | string> {
  const printed = await run(candidate.path, [...candidate.args, "-I", "-c", CHECK], { timeoutMs: CHECK_MS });
  if (printed.code !== 0) return `${candidate.path} ${reason(printed.err)}`;
  const [first = "", path = ""] = printed.out.trim().split(/\r?\n/);
  const version = versionIn(first);
  if (!version || path === "") return `${candidate.path} does not say its version`;
  if (!atLeast(version, NEEDED_PYTHON)) return `${candidate.path} is Python ${shown(version)}`;
  return { path, version };
}

function reason(err: string): string {
  if (/No module named '?(venv|ensurepip)/.test(err)) {
    return "has no module venv (on Debian and Ubuntu: apt install python3-venv)";
  }
  const last = err.trim().split(/\r?\n/).at(-1);
  return last ? `does not run (${last})` : "does not run";
}

function nothing(seen: readonly string[]): string {
  const found = seen.length > 0 ? ` Found: ${[...new Set(seen)].slice(0, 4).join("; ")}.` : "";
  return `Nexus needs Python 3.11 or later to install its server.${found} Install one, or name one in the setting nexus.python.`;
}
