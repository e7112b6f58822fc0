/**
 * Whether the end-to-end tests notice what they have to: `node scripts/mutate.mjs [WORDS…]`, of breakages with these words.
 *
 * 1. Without a breakage the tests must be green; else nothing is said of the breakages.
 * 2. Each breakage (breakages.mjs) is made alone, in a copy of the extension and the daemon; the work tree stays as it is.
 * 3. Only the file of tests runs that has to notice it. It is caught where the very test fails that is named.
 * 4. One that is missed, or does not apply any more, makes the run fail. `--check` only says whether all apply; with
 *    `--green` the tests are taken to be green without a breakage, as they were a moment ago.
 */
import { spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { BREAKAGES, brokenTexts } from "./breakages.mjs";
import { CACHE, EXTENSION, run } from "./e2e-setup.mjs";

const ROOT = path.resolve(EXTENSION, "..");
const WORK = mkdtempSync(path.join(tmpdir(), "nexus-mutation-"));
const COPIED = ["context", "daemon", "vscode-extension", "LICENSE", "pyproject.toml", "README.md"];
const RUNS = 2; // where a machine is so busy that no window opens
const NOT_COPIED = new Set(["node_modules", ".e2e", "dist", "__pycache__", "test"]);

const args = process.argv.slice(2);
const isCheck = args.includes("--check");
const isGreen = args.includes("--green");
const words = args.filter((word) => !word.startsWith("--"));
const chosen = BREAKAGES.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));

try {
  for (const breakage of chosen) brokenTexts(ROOT, breakage);
  if (isCheck) console.log(`${chosen.length} breakages apply`);
  else process.exitCode = await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(WORK, { recursive: true, force: true });
}

async function main() {
  if (!isGreen) await requireGreen([...new Set(chosen.map(({ file }) => file))]);
  const rows = [];
  for (const breakage of chosen) {
    const began = performance.now();
    const verdict = await judge(breakage);
    rows.push({ ...verdict, name: breakage.name, seconds: (performance.now() - began) / 1000, file: breakage.file });
    console.log(line(rows.at(-1)));
  }
  const missed = rows.filter(({ caught }) => !caught);
  console.log(`\n${rows.map(line).join("\n")}\n\n${rows.length - missed.length} of ${rows.length} caught`);
  return missed.length > 0 ? 1 : 0;
}

/** Also packages the extension, and writes what the runs with a breakage need. */
async function requireGreen(files) {
  console.log(`Without a breakage: ${files.join(", ")}`);
  const code = await show(process.execPath, [path.join(EXTENSION, "scripts/e2e.mjs"), ...files.map(fileOf)]);
  if (code !== 0) throw new Error("The tests fail without any breakage: nothing can be said of the breakages.");
}

function line({ caught, name, seconds, file, why }) {
  const verdict = caught ? "caught" : "MISSED";
  return `${verdict}  ${name.padEnd(36)} ${`${file}.test.ts`.padEnd(24)} ${seconds.toFixed(0).padStart(4)} s${why ? `  ${why}` : ""}`;
}

async function judge(breakage) {
  rmSync(WORK, { recursive: true, force: true });
  const tree = path.join(WORK, "tree");
  for (const part of COPIED) cpSync(path.join(ROOT, part), path.join(tree, part), { recursive: true, filter });
  const texts = brokenTexts(tree, breakage);
  for (const [file, text] of texts) writeFileSync(path.join(tree, file), text);
  const env = { ...process.env, NEXUS_E2E_CACHE: path.join(WORK, "cache") };
  const tools = await prepareCache(env.NEXUS_E2E_CACHE);
  const isOf = (part) => [...texts.keys()].some((file) => file.startsWith(part));
  if (isOf("vscode-extension/")) await pack(path.join(tree, "vscode-extension"), tools);
  if (isOf("daemon/") || isOf("context/")) env.NEXUS_E2E_SERVER = nexusOf(tree);
  return await verdictOf(breakage, tools, env);
}

function filter(source) {
  return !NOT_COPIED.has(path.basename(source));
}

/** What `setup.ts` finds: the tools as they are, the packages in a copy that a breakage may replace. */
async function prepareCache(cache) {
  mkdirSync(cache, { recursive: true });
  const packages = path.join(cache, "packages");
  cpSync(path.join(CACHE, "packages"), packages, { recursive: true });
  const tools = JSON.parse(readFileSync(path.join(CACHE, "tools.json"), "utf8"));
  const vsix = tools.vsix.map((file) => path.join(packages, path.basename(file)));
  writeFileSync(path.join(cache, "tools.json"), JSON.stringify({ ...tools, vsix }));
  return { ...tools, vsix };
}

async function pack(extension, tools) {
  symlinkSync(path.join(EXTENSION, "node_modules"), path.join(extension, "node_modules"));
  await run(tools.node, ["esbuild.mjs"], { cwd: extension });
  const target = tools.vsix.find((file) => path.basename(file) === "nexus.vsix");
  rmSync(target);
  await run(tools.node, ["scripts/package.mjs", target], { cwd: extension });
}

/** The command `nexus` of a copy: the environment's Python, with the copy's packages before the installed ones. */
function nexusOf(tree) {
  const file = path.join(tree, "nexus");
  const python = path.join(ROOT, ".venv/bin/python");
  const packages = [path.join(tree, "context"), path.join(tree, "daemon")].join(path.delimiter);
  writeFileSync(file, `#!/bin/sh\nPYTHONPATH='${packages}' exec '${python}' -P -m nexus_daemon "$@"\n`);
  chmodSync(file, 0o755);
  return file;
}

async function verdictOf({ file, noticedBy }, tools, env) {
  let verdict;
  for (let run = 0; run < RUNS && verdict === undefined; run++)
    verdict = judged(await testsOf(file, tools, env), noticedBy);
  return verdict ?? { caught: false, why: `the test did not come to its turn in ${RUNS} runs` };
}

/** Undefined: nothing can be said, since the window did not even open. */
function judged(tests, noticedBy) {
  if (tests.length > 0 && !tests.some(({ title }) => title === noticedBy)) {
    return { caught: false, why: `there is no test "${noticedBy}"` };
  }
  const of = (wanted) => tests.filter(({ status }) => status === wanted).map(({ title }) => title);
  if (of("failed").includes(noticedBy)) return { caught: true };
  if (of("failed").length > 0) return { caught: false, why: `failed instead: ${of("failed").join("; ")}` };
  return of("passed").includes(noticedBy) ? { caught: false, why: "its test is green" } : undefined;
}

/** What became of each test of a file: its title, and `passed`, `failed` or `skipped`. */
async function testsOf(file, tools, env) {
  const report = path.join(WORK, "report.json");
  rmSync(report, { force: true });
  const vitest = path.join(EXTENSION, "node_modules/vitest/vitest.mjs");
  const config = path.join(EXTENSION, "test/e2e/vitest.config.ts");
  const flags = ["--config", config, "--reporter=json", `--outputFile=${report}`, "--bail=1"];
  await run(tools.node, [vitest, "run", ...flags, fileOf(file)], { cwd: EXTENSION, env }).catch(() => undefined);
  if (!existsSync(report)) return [];
  return JSON.parse(readFileSync(report, "utf8")).testResults.flatMap(({ assertionResults }) => assertionResults);
}

function fileOf(name) {
  return `test/e2e/${name}.test.ts`;
}

function show(command, args) {
  return new Promise((resolve) => {
    spawn(command, args, { stdio: "inherit" }).on("close", (code) => resolve(code ?? 1));
  });
}
