/**
 * The server in a virtual environment of the extension's own, in the editor's storage.
 *
 * 1. Its directory carries the wheel's name, the digest of what was locked, and the Python version: a new wheel is a new
 *    environment, and the old ones are removed once the new one works.
 * 2. It is made under another name and renamed when it is complete: one that is half made is never found.
 * 3. Dependencies come as wheels with the digests of the bundled lock file, so nothing is built and nothing else is taken;
 *    the server itself comes from the extension.
 * 4. It is started as `python -I -m nexus_daemon`: a renamed environment's scripts would name the old place.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Run } from "./programs";
import type { Python } from "./python";
import { SetupError } from "./remedies";

export interface Bundle {
  readonly wheel: string;
  readonly requirements: string;
  /** The environment's directory name. */
  readonly name: string;
}

export interface Installing {
  readonly run: Run;
  /** The directory for environments. */
  readonly storage: string;
  readonly bundle: Bundle;
  readonly windows: boolean;
  readonly signal: AbortSignal;
  /** What it is doing, in a few words. */
  readonly report: (doing: string) => void;
  readonly log: (line: string) => void;
}

const VENV_MS = 2 * 60_000;
const INSTALL_MS = 10 * 60_000;
/** A half-made environment that is older than this belongs to nobody. */
const ABANDONED_MS = 30 * 60_000;
const TEMPORARY = "making-";

/** What the extension brings: one wheel and the lock file. Raises SetupError where the extension is incomplete. */
export async function bundleIn(directory: string): Promise<Bundle> {
  const files = await readdir(directory).catch(() => [] as string[]);
  const wheel = files.find((file) => file.endsWith(".whl"));
  if (wheel === undefined || !files.includes("requirements.txt")) {
    throw new SetupError(
      "no-server",
      "This build of the extension brings no server. Install one with `pip install nexusd`, and name it in the setting nexus.server.path.",
      "serverSetting",
      "tryAgain",
    );
  }
  const [paths, version] = [
    [wheel, "requirements.txt"].map((file) => join(directory, file)),
    wheel.split("-")[1] ?? "0",
  ];
  const digest = createHash("sha256");
  for (const path of paths) digest.update(await readFile(path));
  return {
    wheel: join(directory, wheel),
    requirements: join(directory, "requirements.txt"),
    name: `nexus-${version}-${digest.digest("hex").slice(0, 12)}`,
  };
}

/** The environment's Python, if the environment is complete. */
export async function installed(storage: string, bundle: Bundle, windows: boolean): Promise<string | undefined> {
  const python = pythonOf(join(storage, bundle.name), windows);
  return (await exists(python)) ? python : undefined;
}

/** Makes the environment and returns its Python. Raises SetupError; AbortError when `signal` is. */
export async function install(base: Python, how: Installing): Promise<string> {
  await mkdir(how.storage, { recursive: true });
  await sweep(how.storage, undefined);
  const temporary = join(how.storage, `${TEMPORARY}${randomUUID()}`);
  try {
    await make(base, temporary, how);
    await settle(temporary, join(how.storage, how.bundle.name));
  } finally {
    await rm(temporary, { recursive: true, force: true }).catch(() => undefined);
  }
  await sweep(how.storage, how.bundle.name);
  return pythonOf(join(how.storage, how.bundle.name), how.windows);
}

/** A broken environment goes, so that the next start makes it anew. */
export async function discard(storage: string, bundle: Bundle): Promise<void> {
  await rm(join(storage, bundle.name), { recursive: true, force: true });
}

async function make(base: Python, directory: string, how: Installing): Promise<void> {
  how.report("Making a virtual environment");
  await step(how, base.path, ["-I", "-m", "venv", directory], VENV_MS, "A virtual environment could not be made");
  const python = pythonOf(directory, how.windows);
  const pip = [
    "-I",
    "-m",
    "pip",
    "install",
    "--disable-pip-version-check",
    "--no-input",
    "--no-deps",
    "--only-binary=:all:",
  ];
  how.report("Downloading what the server needs");
  const locked = [...pip, "--require-hashes", "-r", how.bundle.requirements];
  await step(how, python, locked, INSTALL_MS, "What the server needs could not be installed");
  how.report("Installing the server");
  await step(how, python, [...pip, "--no-index", how.bundle.wheel], INSTALL_MS, "The server could not be installed");
  how.report("Trying the server");
  await step(
    how,
    python,
    ["-I", "-m", "nexus_daemon", "--version"],
    VENV_MS,
    "The server was installed, but does not run",
  );
}

async function step(
  how: Installing,
  command: string,
  args: string[],
  timeoutMs: number,
  failure: string,
): Promise<void> {
  how.log(`> ${command} ${args.join(" ")}`);
  const printed = await how.run(command, args, { timeoutMs, signal: how.signal, line: how.log });
  how.signal.throwIfAborted();
  if (printed.code === 0) return;
  const said = (printed.err.trim() || printed.out.trim())
    .split(/\r?\n/)
    .filter((line) => !/^\s*(\[notice\]|WARNING)/.test(line));
  throw new SetupError(
    "install-failed",
    `${failure}: ${said.at(-1) ?? "no word why"}. The output says more. Without a network, install it elsewhere (pip install nexusd) and name it in the setting nexus.server.path.`,
    "tryAgain",
    "output",
    "serverSetting",
  );
}

/** Another window may have been faster: then its environment is as good. */
async function settle(temporary: string, final: string): Promise<void> {
  try {
    await rename(temporary, final);
  } catch (error) {
    if (!(await exists(join(final, "pyvenv.cfg")))) throw error;
  }
}

/** Removes what was abandoned and, once `keep` works, other versions. What is in use on Windows stays for another day. */
async function sweep(storage: string, keep: string | undefined): Promise<void> {
  for (const name of await readdir(storage)) {
    const path = join(storage, name);
    const abandoned = name.startsWith(TEMPORARY) && (await ageMs(path)) > ABANDONED_MS;
    const older = keep !== undefined && name.startsWith("nexus-") && name !== keep;
    if (abandoned || older) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

function pythonOf(directory: string, windows: boolean): string {
  return windows ? join(directory, "Scripts", "python.exe") : join(directory, "bin", "python");
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

async function ageMs(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found ? Date.now() - found.mtimeMs : 0;
}
