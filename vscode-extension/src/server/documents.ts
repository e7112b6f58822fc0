/** The documents that the daemon is told of while they are open: unsaved text wins over the disk. */

const JSON_FILES = ["**/.nexus3/config.json", "**/.nexus3/mcp.json", "**/.mcp.json", "**/.vscode/mcp.json"];
/** What the assistants in use read, too: what is wrong there shows as one types. */
const PROGRAM_FILES = [
  "**/.claude.json",
  "**/.{claude,codex,cursor,gemini,opencode}/**/*.{json,jsonc,toml}",
  "**/opencode.{json,jsonc}",
  "**/.cursorrules",
];
/** Every Markdown file: any may be an instruction file by the settings, a skill, or imported by `@path`. */
const TEXT_LANGUAGES = ["markdown", "prompt", "instructions", "skill", "chatagent"];
const TEXT_FILES = [
  "**/*.mdc",
  "**/*.mdx",
  "**/AGENTS.md",
  "**/CLAUDE.md",
  "**/NEXUS.md",
  "**/SKILL.md",
  "**/.nexus3/**/*.txt",
];

export const DOCUMENTS: readonly ({ scheme: "file"; pattern: string } | { scheme: "file"; language: string })[] = [
  ...[...JSON_FILES, ...PROGRAM_FILES, ...TEXT_FILES].map((pattern) => ({ scheme: "file" as const, pattern })),
  ...TEXT_LANGUAGES.map((language) => ({ scheme: "file" as const, language })),
];
