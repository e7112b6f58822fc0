// Everything that a test can say of the extension, from nothing: `node scripts/e2e.mjs`.
//
//   node scripts/e2e.mjs [--as-built] FILTER…               only the end-to-end tests whose file is like that
//   node scripts/e2e.mjs [--as-built] --screenshots         the pictures in media/screenshots instead
//   node scripts/e2e.mjs --bench FILE ROUNDS EDITS          how quick the panel is (test/bench/panel.ts), instead
//   node scripts/e2e.mjs --prepare                          only the first step, which mostly waits for the network
//
// 1. Fetches what the tests run in (e2e-setup.mjs), and the extension's own dependencies where the lock file is newer.
// 2. Types, lint and unit tests; not where something else is asked for by an argument.
// 3. Meanwhile packages the extension as users get it, and the extension that brings a language model for tests.
//    With --as-built, what was packaged before is used again.
// 4. Runs the tests with the Node that code-server wants. The code of the end is that of the tests.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import { allOrFirstError, CACHE, EXTENSION, run, setup, timed } from "./e2e-setup.mjs";

/** What Biome and Vitest say at the end. */
const SUMMARY = /^\s*(Checked|Test Files|Tests)\s+\d/;
const MODEL = path.join(EXTENSION, "test/e2e/model-extension");

try {
  process.exitCode = await timed("everything", main);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

async function main() {
  const args = process.argv.slice(2);
  const flag = (name) => args.includes(name) && args.splice(args.indexOf(name), 1).length > 0;
  const isAll = args.length === 0;
  const [asBuilt, screenshots, prepare] = [flag("--as-built"), flag("--screenshots"), flag("--prepare")];
  const bench = flag("--bench");
  const tools = await timed("what the tests run in", setup);
  const env = { ...process.env, PATH: `${path.dirname(tools.node)}${path.delimiter}${process.env.PATH}` };
  await timed("dependencies", () => dependencies(env));
  if (prepare) return 0;
  const packages = path.join(CACHE, "packages");
  const steps = [];
  if (isAll) steps.push(timed("types and lint", () => summarized("check", env)));
  if (isAll) steps.push(timed("unit tests", () => summarized("test", env)));
  if (!asBuilt || !existsSync(packages)) steps.push(timed("packages", () => pack(packages, tools, env)));
  await allOrFirstError(steps);
  const vsix = (await readdir(packages)).filter((name) => name.endsWith(".vsix"));
  const written = { ...tools, vsix: vsix.map((name) => path.join(packages, name)) };
  await writeFile(path.join(CACHE, "tools.json"), JSON.stringify(written, null, 2));
  if (screenshots) env.NEXUS_E2E_SCREENSHOTS = "1";
  if (bench)
    return await timed("panel", () => show(tools.node, [path.join(EXTENSION, "test/bench/panel.ts"), ...args], env));
  const vitest = path.join(EXTENSION, "node_modules/vitest/vitest.mjs");
  const config = path.join(EXTENSION, "test/e2e/vitest.config.ts");
  return await timed("end-to-end tests", () => show(tools.node, [vitest, "run", "--config", config, ...args], env));
}

/** Runs a script of package.json, and shows of what it says how many of what it was. Rejects with all when it fails. */
async function summarized(script, env) {
  const said = await run("npm", ["run", "--silent", script], { cwd: EXTENSION, env });
  for (const line of stripVTControlCharacters(said).split("\n")) if (SUMMARY.test(line)) console.log(line);
}

/** `npm ci`, unless the lock file is older than what it led to. */
async function dependencies(env) {
  const installed = path.join(EXTENSION, "node_modules/.package-lock.json");
  const lock = await stat(path.join(EXTENSION, "package-lock.json"));
  if (existsSync(installed) && (await stat(installed)).mtimeMs >= lock.mtimeMs) return;
  await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: EXTENSION, env });
}

async function pack(packages, tools, env) {
  await rm(packages, { recursive: true, force: true });
  await mkdir(packages, { recursive: true });
  await run("npm", ["run", "package", "--", path.join(packages, "nexus.vsix")], { cwd: EXTENSION, env });
  const vsce = path.join(EXTENSION, "node_modules/@vscode/vsce/vsce");
  const flags = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license"];
  await run(tools.node, [vsce, ...flags, "-o", path.join(packages, "model.vsix")], { cwd: MODEL, env });
  await host(packages);
}

/** The tests that run inside the extension host: a bundle that VS Code loads by its path. */
async function host(packages) {
  // esbuild's install script replaces its `bin/esbuild` with a native program: only its JavaScript is there with and without
  const { build, stop } = await import("esbuild");
  const target = path.join(packages, "host");
  await cp(path.join(EXTENSION, "test/host/package.json"), path.join(target, "package.json"));
  await build({
    entryPoints: [path.join(EXTENSION, "test/host/run.ts")],
    outfile: path.join(target, "run.js"),
    bundle: true,
    platform: "node",
    format: "cjs",
    external: ["vscode"],
    logLevel: "warning",
  });
  await stop();
}

/** Runs a program of the extension, and shows what it says. Resolves to its code. */
function show(command, args, env) {
  const child = spawn(command, args, { cwd: EXTENSION, env, stdio: "inherit" });
  return new Promise((resolve) => child.on("close", (code) => resolve(code ?? 1)));
}
