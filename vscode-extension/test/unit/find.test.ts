import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { findServer, type Search } from "../../src/server/find";
import { bundleIn } from "../../src/server/install";
import { serveArgs, stopShared } from "../../src/server/launch";
import { isInside, onPath, type Printed, type Run, run, written } from "../../src/server/programs";
import { findPython } from "../../src/server/python";
import { SetupError } from "../../src/server/remedies";
import type { Version } from "../../src/server/versions";

const FOLDER = `$\{workspaceFolder}`;
const windows = process.platform === "win32";
const fails = (err: string): Printed => ({ code: 1, out: "", err });
const prints = (out: string): Printed => ({ code: 0, out, err: "" });

let root: string;
/** What each program prints, by the end of its path; `venv` makes an environment. */
let programs: Record<string, (args: readonly string[]) => Printed | Promise<Printed>>;
let ran: string[][];
let logged: string[];
let known: Map<string, Version>;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "nexus-find-"));
  programs = {};
  [ran, logged, known] = [[], [], new Map()];
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function program(path: string, answer: (args: readonly string[]) => Printed | Promise<Printed>): Promise<string> {
  const file = join(root, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, "", { mode: 0o755 });
  programs[file] = answer;
  return file;
}

const fakeRun: Run = async (command, args, { signal }) => {
  ran.push([command.replace(root, ""), ...args]);
  if (signal?.aborted) return fails("ended");
  const known = Object.keys(programs).find((path) => command === path);
  if (known) return programs[known]?.(args) ?? fails("no answer");
  return command.includes("nexus-env") || command.endsWith("python") ? environment(args) : fails("no such program");
};

/** The Python of a managed environment. */
let environment: (args: readonly string[]) => Printed;

async function search(given: Partial<Search> & { path?: string[] } = {}): Promise<Search> {
  const bundled = join(root, "bundled");
  await mkdir(bundled, { recursive: true });
  await writeFile(join(bundled, "nexusd-0.1.0-py3-none-any.whl"), "wheel");
  await writeFile(join(bundled, "requirements.txt"), "apsw==1");
  environment = (args) => (args.includes("--version") ? prints("nexus 0.1.0") : prints(""));
  const places = { path: (given.path ?? []).map((one) => join(root, one)).join(delimiter), windows, refused: [] };
  const common = { run: fakeRun, places, folder: join(root, "work") };
  return {
    ...common,
    trusted: true,
    setting: "",
    isShared: true,
    python: { ...common, setting: "", chosen: async () => undefined },
    bundled,
    storage: join(root, "storage"),
    log: (line) => logged.push(line),
    known: { get: (key) => known.get(key), set: (key, version) => known.set(key, version) },
    installing: (work) => work({ signal: new AbortController().signal, report: (line) => logged.push(line) }),
    ...given,
  };
}

const python = (version = "3.12.1") =>
  program("usr/bin/python3", async (args) => {
    const at = args.at(-1) ?? "";
    if (args.includes("venv")) {
      await mkdir(join(at, "bin"), { recursive: true });
      await writeFile(join(at, "bin", "python"), "", { mode: 0o755 });
      await writeFile(join(at, "pyvenv.cfg"), "");
    }
    return prints(`${version}\n${join(root, "usr/bin/python3")}\n`);
  });

test("the setting comes before the path", async () => {
  const chosen = await program("mine/nexus", () => prints("nexus 0.3.0"));
  await program("bin/nexus", () => prints("nexus 0.2.0"));
  expect(await findServer(await search({ setting: chosen, path: ["bin"] }))).toEqual({
    command: chosen,
    prefix: [],
    isShared: true,
    from: "setting",
    version: [0, 3, 0],
  });
});

test("what a program said is remembered until its file changes", async () => {
  let says = "nexus 0.1.0";
  const file = await program("bin/nexus", () => prints(says));
  const given = await search({ path: ["bin"] });
  await findServer(given);
  says = "nexus 0.2.0";
  expect((await findServer(given)).version).toEqual([0, 1, 0]);
  await utimes(file, 1, 1);
  expect((await findServer(given)).version).toEqual([0, 2, 0]);
});

test("a setting that does not fit is an error, not passed over", async () => {
  await program("bin/nexus", () => prints("nexus 0.2.0"));
  const old = await program("mine/nexus", () => prints("nexus 0.0.9"));
  await expect(findServer(await search({ setting: old, path: ["bin"] }))).rejects.toThrow(
    /version 0\.0\.9; 0\.1\.0 or later/,
  );
  const none = await search({ setting: join(root, "nothing"), path: ["bin"] });
  await expect(findServer(none)).rejects.toThrow(/there is no such program/);
});

test("on the path other programs of that name and old ones are passed over", async () => {
  await program("a/nexus", () => prints("Nexus Repository Manager 3"));
  await program("b/nexus", () => prints("nexus 0.0.1"));
  const third = await program("c/nexus", () => prints("nexus 0.1.0"));
  const launch = await findServer(await search({ path: ["a", "b", "c"] }));
  expect(launch).toEqual({ command: third, prefix: [], isShared: true, from: "path", version: [0, 1, 0] });
  expect(logged).toHaveLength(2);
});

test.each([
  [[], true, "serve --remote=auto"],
  [[], false, "serve"],
  [["-I", "-m", "nexus_daemon"], true, "-I -m nexus_daemon serve --remote=auto"],
  [["-I", "-m", "nexus_daemon"], false, "-I -m nexus_daemon serve"],
])("%j, for all windows: %s, is started with %s", (prefix, isShared, words) => {
  expect(serveArgs({ prefix, isShared }).join(" ")).toBe(words);
});

test("the setting decides whose server it is, wherever the program comes from", async () => {
  const chosen = await program("bin/nexus", () => prints("nexus 0.1.0"));
  await python();
  const places = [{ setting: chosen }, { path: ["bin"] }, { path: ["usr/bin"] }];
  for (const isShared of [true, false]) {
    for (const place of places)
      expect(await findServer(await search({ ...place, isShared }))).toMatchObject({ isShared });
  }
});

test("the daemon of all windows is ended, and what came of it is logged", async () => {
  const command = await program("bin/nexus", () => prints("The shared daemon, process 7, has ended.\n"));
  const log = (line: string) => void logged.push(line);
  await stopShared({ command, prefix: ["-m", "x"] }, fakeRun, log);
  programs[command] = () => fails("nexus: stop: no such command");
  await stopShared({ command, prefix: [] }, fakeRun, log);
  programs[command] = () => ({ code: null, out: "", err: "" });
  await stopShared({ command, prefix: [] }, fakeRun, log);
  expect(ran).toEqual([
    ["/bin/nexus", "-m", "x", "stop", "--force"],
    ["/bin/nexus", "stop", "--force"],
    ["/bin/nexus", "stop", "--force"],
  ]);
  expect(logged).toEqual([
    "The shared daemon, process 7, has ended.",
    "The daemon of all windows could not be ended: nexus: stop: no such command",
    "The daemon of all windows could not be ended: it does not say why",
  ]);
});

test("without either it is installed once, and found the next time", async () => {
  await python();
  const given = await search({ path: ["usr/bin"] });
  const first = await findServer(given);
  expect(first).toMatchObject({ from: "managed", prefix: ["-I", "-m", "nexus_daemon"], version: [0, 1, 0] });
  expect(await readdir(given.storage)).toEqual([(await bundleIn(given.bundled)).name]);
  const pip = ran.filter((line) => line.includes("pip"));
  expect(pip).toHaveLength(2);
  expect(pip[0]).toEqual(expect.arrayContaining(["--require-hashes", "--only-binary=:all:", "--no-deps"]));
  expect(pip[1]).toEqual(expect.arrayContaining(["--no-index"]));

  ran.length = 0;
  expect(await findServer(given)).toEqual(first);
  expect(ran).toEqual([]);
});

test.each([true, false])(
  "a new wheel is a new environment; the old one goes, its shared daemon too: %s",
  async (isShared) => {
    await python();
    const given = await search({ path: ["usr/bin"], isShared });
    await findServer(given);
    await writeFile(join(given.bundled, "nexusd-0.1.0-py3-none-any.whl"), "another wheel");
    ran.length = 0;
    await findServer(given);
    const { name } = await bundleIn(given.bundled);
    expect(await readdir(given.storage)).toEqual([name]);
    const stopped = ran.filter((line) => line.includes("stop"));
    const stop = [`/storage/${name}/bin/python`, "-I", "-m", "nexus_daemon", "stop", "--force"];
    expect(stopped).toEqual(isShared ? [stop] : []);
  },
);

test("a half-made environment is never found, and an abandoned one goes", async () => {
  await python();
  const given = await search({ path: ["usr/bin"] });
  environment = (args) => (args.includes("pip") ? fails("ERROR: No matching distribution found for apsw") : prints(""));
  await expect(findServer(given)).rejects.toThrow(/could not be installed: ERROR: No matching/);
  expect(await readdir(given.storage)).toEqual([]);

  const abandoned = join(given.storage, "making-long-ago");
  await mkdir(abandoned);
  await utimes(abandoned, 0, 0);
  await mkdir(join(given.storage, "making-just-now"));
  environment = (args) => (args.includes("--version") ? prints("nexus 0.1.0") : prints(""));
  await findServer(given);
  expect((await readdir(given.storage)).sort()).toEqual(["making-just-now", (await bundleIn(given.bundled)).name]);
});

test("a broken environment is made anew", async () => {
  await python();
  const given = await search({ path: ["usr/bin"] });
  await findServer(given);
  known.clear();
  let broken = true;
  environment = (args) => {
    if (args.includes("pip")) broken = false;
    return broken ? fails("libpython is missing") : prints("nexus 0.1.0");
  };
  expect(await findServer(given)).toMatchObject({ from: "managed" });
  expect(logged.join("\n")).toMatch(/does not run \(libpython is missing\): it is installed anew/);
});

test("an installation that is cancelled leaves nothing", async () => {
  await python();
  const abort = new AbortController();
  const given = await search({
    path: ["usr/bin"],
    installing: (work) =>
      work({
        signal: abort.signal,
        report: (line) => line.startsWith("Downloading") && abort.abort(new Error("cancelled")),
      }),
  });
  await expect(findServer(given)).rejects.toThrow("cancelled");
  expect(await readdir(given.storage)).toEqual([]);
});

test("in a window that is not trusted nothing of its folders is run, and nothing is installed", async () => {
  const theirs = await program("work/.venv/bin/nexus", () => prints("nexus 9.9.9"));
  await python();
  const given = await search({ path: ["work/.venv/bin", "usr/bin"], trusted: false });
  const distrustful = { ...given, places: { ...given.places, refused: [join(root, "work")] } };
  await expect(findServer(distrustful)).rejects.toThrow(/nothing is installed while this folder is not trusted/);
  await expect(findServer({ ...distrustful, setting: theirs })).rejects.toThrow(/the folder is not trusted/);
  await expect(findServer({ ...distrustful, setting: `${FOLDER}/.venv/bin/nexus` })).rejects.toThrow(/not trusted/);
  expect(ran).toEqual([]);
});

test("without a Python that fits the message says what was found and what to do", async () => {
  await python("3.9.2");
  const failure = await findServer(await search({ path: ["usr/bin"] })).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(SetupError);
  expect((failure as SetupError).message).toMatch(/Python 3\.11 or later.*is Python 3\.9\.2/);
  expect((failure as SetupError).remedies).toEqual(["getPython", "pythonSetting", "tryAgain"]);
});

test("a Python without venv says which package it wants", async () => {
  await program("usr/bin/python3", () => fails("ModuleNotFoundError: No module named 'ensurepip'"));
  const { python: given } = await search({ path: ["usr/bin"] });
  await expect(findPython(given)).rejects.toThrow(/apt install python3-venv/);
});

test("the editor's choice comes before the path, and a setting that is too old is an error", async () => {
  await python("3.11.2");
  const chosen = await program("env/python", () => prints(`3.13.0\n${join(root, "base/python")}`));
  const { python: given } = await search({ path: ["usr/bin"] });
  expect(await findPython({ ...given, chosen: async () => chosen })).toEqual({
    path: join(root, "base/python"),
    version: [3, 13, 0],
  });
  const old = await program("old/python", () => prints("3.8.0\nx"));
  await expect(findPython({ ...given, setting: old })).rejects.toThrow(/nexus\.python does not fit.*3\.8\.0/);
});

test("relative entries of the path, directories and files that cannot be run do not count", async () => {
  await mkdir(join(root, "a/nexus"), { recursive: true });
  await mkdir(join(root, "b"));
  await writeFile(join(root, "b/nexus"), "", { mode: 0o644 });
  const path = ["", ".", "node_modules/.bin", join(root, "a"), join(root, "b")].join(delimiter);
  expect(await onPath("nexus", { path, windows: false, refused: [] })).toEqual([]);
});

test.each([
  ["/w/a", ["/w/a"], true],
  ["/w/a/b", ["/w/a"], true],
  ["/w/ab", ["/w/a"], false],
  ["/w", ["/w/a"], false],
  ["/w/..a", ["/w"], true],
])("%s is inside %j: %s", (path, directories, inside) => {
  expect(isInside(path, directories)).toBe(inside);
});

test("settings may say ~ and the workspace folder", () => {
  expect(written("  ", "/w")).toBeUndefined();
  expect(written(`${FOLDER}/x`, "/w")).toBe("/w/x");
  expect(written("~/x", "/w")).toMatch(/^\/.*\/x$/);
});

test("a real program is run without a shell, and what takes too long is ended", async () => {
  const quick = await run(process.execPath, ["-e", "console.log(process.argv[1])", "$HOME; ls"], { timeoutMs: 10_000 });
  expect(quick).toEqual({ code: 0, out: "$HOME; ls\n", err: "" });
  expect((await run(process.execPath, ["-e", "setInterval(()=>0,99)"], { timeoutMs: 200 })).code).toBeNull();
  expect((await run(join(root, "nothing"), [], { timeoutMs: 200 })).code).toBeNull();
});

test("a program does not look for Python's modules where a shell said", async () => {
  vi.stubEnv("PYTHONPATH", root);
  const script = "console.log('PYTHONPATH' in process.env, process.env.PYTHONSAFEPATH, 'PATH' in process.env)";
  const printed = await run(process.execPath, ["-e", script], { timeoutMs: 10_000 });
  vi.unstubAllEnvs();
  expect(printed.out).toBe("false 1 true\n");
});
