/**
 * Bundles the extension: `node esbuild.mjs [--watch]`.
 *
 * Two bundles for the extension host, because what activation reads, activation pays for: `extension.js` is small and
 * registers; `client.js` holds the language client and is loaded after activation.
 */
import { copyFile, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { build, context } from "esbuild";

const watch = process.argv.includes("--watch");

const host = {
  entryPoints: { extension: "src/extension.ts", client: "src/server/client.ts" },
  outdir: "dist",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode", "./client.js"],
  minify: !watch,
  sourcemap: watch,
  legalComments: "none",
  metafile: true,
  logLevel: "info",
};

/** The panel's own script, where there is one. */
async function panel() {
  const entry = "src/panel/webview/main.ts";
  const there = await stat(entry).catch(() => undefined);
  return (
    there && {
      ...host,
      entryPoints: { panel: entry },
      platform: "browser",
      format: "iife",
      target: "es2022",
      external: [],
    }
  );
}

/** The licences of what the bundles hold, as they ask for. */
async function notices(inputs) {
  const packages = new Set(inputs.flatMap((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1] ?? []));
  const parts = [];
  for (const directory of [...packages].sort()) {
    const { name, version, license } = JSON.parse(await readFile(`${directory}/package.json`, "utf8"));
    const file = (await readdir(directory)).find((one) => /^licen[cs]e/i.test(one));
    if (!file) throw new Error(`${name} has no licence file: it cannot be bundled`);
    parts.push(`${name} ${version} (${license})\n\n${(await readFile(`${directory}/${file}`, "utf8")).trim()}\n`);
  }
  await writeFile("dist/NOTICES.txt", parts.join(`\n${"-".repeat(80)}\n\n`));
}

await rm("dist", { recursive: true, force: true });
await copyFile("../LICENSE", "LICENSE");
const inputs = [];
for (const options of [host, await panel()].filter(Boolean)) {
  if (watch) await (await context(options)).watch();
  else inputs.push(...Object.keys((await build(options)).metafile.inputs));
}
if (!watch) await notices(inputs);
