/**
 * What the extension brings of the server, in `server/`: the wheel, and the lock file of all that it needs.
 *
 *   node scripts/bundle-server.mjs          builds the wheel
 *   node scripts/bundle-server.mjs --lock   also resolves anew and writes requirements.txt, which is committed
 *
 * The lock holds the digest of every wheel of every platform, and where a version differs by platform or Python, each.
 * PYTHON names the Python that builds: the project's own environment, else python3.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const server = resolve(import.meta.dirname, "../server");
const own = join(root, ".venv/bin/python");
const python = process.env.PYTHON ?? (existsSync(own) ? own : "python3");
/** Resolved for the oldest Python that the server runs on, and all later ones. */
const OLDEST = "3.11";
/** What the server needs besides, to start MCP servers. */
const EXTRA = "mcp";

const run = (command, ...args) => execFileSync(command, args, { stdio: ["ignore", "inherit", "inherit"], cwd: root });

function wheel() {
  for (const old of readdirSync(server).filter((name) => name.endsWith(".whl"))) rmSync(join(server, old));
  run(python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", server, root);
}

function lock() {
  const temporary = mkdtempSync(join(tmpdir(), "nexus-lock-"));
  try {
    run(python, "-m", "venv", temporary);
    const bin = join(temporary, "bin");
    run(join(bin, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv");
    const made = join(temporary, "requirements.txt");
    const how = ["--universal", "--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--quiet"];
    run(
      join(bin, "uv"),
      "pip",
      "compile",
      "pyproject.toml",
      ...["--extra", EXTRA],
      ...how,
      "--python-version",
      OLDEST,
      "--no-build",
      "-o",
      made,
    );
    const text = readFileSync(made, "utf8");
    if (/https?:/.test(text))
      throw new Error("the lock file names a host; it must hold names, versions and digests only");
    writeFileSync(
      join(server, "requirements.txt"),
      `# Written by \`npm run bundle-server -- --lock\` from:\n# ${wanted()}\n${text}`,
    );
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** The dependencies of pyproject.toml on one line, with those of the extra; a test compares it with the lock's own. */
export function wanted() {
  const project = readFileSync(join(root, "pyproject.toml"), "utf8");
  const lists = [/^dependencies = \[\n([^\]]*)\]/m, new RegExp(`^${EXTRA} = \\[([^\\]]*)\\]`, "m")];
  const list = lists.map((pattern) => pattern.exec(project)?.[1] ?? "").join();
  return [...list.matchAll(/"([^"]+)"/g)].map((found) => found[1]).join(", ");
}

if (process.argv[1] === import.meta.filename) {
  mkdirSync(server, { recursive: true });
  if (process.argv.includes("--lock") || !existsSync(join(server, "requirements.txt"))) lock();
  wheel();
}
