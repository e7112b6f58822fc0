/** A monorepo as people have them: the instruction files of every assistant, at the root and below. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { World } from "./world.ts";

const LINE = "Every component has one purpose, and its name says which.\n";

const FILES: Readonly<Record<string, string>> = {
  ".git/HEAD": "ref: refs/heads/main\n",
  "AGENTS.md": "# Shop\n\nA shop in three packages.\n\n## Style\n\n- British English.\n- No abbreviations.\n",
  "CLAUDE.md": "# Claude\n\nBe brief.\n\n@docs/style.md\n",
  "docs/style.md": "# Style\n\nOne idea a sentence.\n",
  "docs/api.md": "# API\n\nEvery route has a version.\n",
  ".mcp.json": '{ "mcpServers": { "tickets": { "command": "tickets-mcp" }, "database": { "command": "db-mcp" } } }\n',
  ".vscode/mcp.json": '{ "servers": { "browser": { "command": "browser-mcp" } } }\n',
  ".github/copilot-instructions.md": "Prefer composition.\n",
  ".github/instructions/python.instructions.md": "---\napplyTo: '**/*.py'\n---\nType everything.\n",
  ".github/instructions/all.instructions.md": "---\napplyTo: '**'\n---\nTests come first.\n",
  ".cursor/rules/base.mdc": "---\nalwaysApply: true\n---\nUse the repository's tools.\n",
  "packages/api/AGENTS.md": "# API\n\n## Handlers\n\n- A handler opens no connection of its own.\n",
  "packages/api/CLAUDE.md": "# Claude on the API\n\n@../../docs/api.md\n",
  "packages/api/main.py": "print('api')\n",
  "packages/web/AGENTS.md": `# Web\n\n${LINE.repeat(Math.ceil(300_000 / LINE.length))}`,
  "packages/web/app.ts": "export const app = 1;\n",
  "packages/broken/AGENTS.md": "# Broken\n\nIts settings are.\n",
  "packages/broken/.nexus3/config.json": '{\n  "context": { "ancestor_dept": 2 \n  "permissions": 1\n}\n',
};

/** Writes the monorepo into the workspaces of the run, and returns its root. */
export function monorepo(world: World, name: string): string {
  const root = path.join(world.root, "workspaces", name, "shop");
  for (const [file, text] of Object.entries(FILES)) {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  }
  return root;
}
