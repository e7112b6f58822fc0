/**
 * Packages what is built, without the network, and says what it weighs: `node scripts/package.mjs [FILE]`.
 * Without a file it is nexus.vsix beside package.json.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { resolve } from "node:path";

const MOST_MB = 6;
const root = resolve(import.meta.dirname, "..");
const file = resolve(process.argv[2] ?? `${root}/nexus.vsix`);

if (!readdirSync(`${root}/server`).some((name) => name.endsWith(".whl"))) {
  throw new Error("server/ has no wheel: run `npm run bundle-server` first.");
}
const vsce = resolve(root, "node_modules/@vscode/vsce/vsce");
// the README's pictures are in the package: no repository is asked for them
const how = ["--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links", "--out", file];
execFileSync(process.execPath, [vsce, "package", ...how], { cwd: root, stdio: "inherit" });
const megabytes = statSync(file).size / 1e6;
console.log(`${file}: ${megabytes.toFixed(2)} MB of at most ${MOST_MB}`);
if (megabytes > MOST_MB) process.exit(1);
