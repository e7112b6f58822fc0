/**
 * Deliberate breakages that the end-to-end tests have to notice, each alone: `node scripts/mutate.mjs`.
 *
 * A breakage is a few edits of source files, named from the repository's root; each edit's text or pattern must occur
 * exactly once. `noticedBy` is the test that has to fail, in `test/e2e/FILE.test.ts`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @typedef {{ file: string; find: string | RegExp; put: string }} Edit
 * @typedef {{ name: string; edits: Edit[]; file: string; noticedBy: string }} Breakage
 */

const SRC = "vscode-extension/src";
const FEATURES = "daemon/nexus_daemon/features";

/** @type {readonly Breakage[]} */
export const BREAKAGES = [
  {
    name: "the view is always that of Nexus",
    edits: [
      {
        file: `${SRC}/focus.ts`,
        find: "name === list.chosen)",
        put: "name === NEXUS)",
      },
    ],
    file: "folders",
    noticedBy: "a folder with nothing but an AGENTS.md has Codex's layers, figures and lenses, and stays as it is",
  },
  {
    name: "the chosen search hit is ignored",
    edits: [
      {
        file: `${SRC}/commands/sessions.ts`,
        find: /(const \{ hit, source \} = await pick\([^;]*\);\n)/,
        put: "$1  return;\n",
      },
    ],
    file: "conversations",
    noticedBy: "a search lists every hit, and the chosen one leads to its conversation",
  },
  {
    name: "tools of the setting are not predicted",
    edits: [
      {
        file: `${SRC}/nextTurn/index.ts`,
        find: "...(turnTools.length === 0 ? {} : { turnTools })",
        put: "",
      },
    ],
    file: "tools",
    noticedBy: "a tool of the setting is part of the figure, and its call is run",
  },
  {
    name: "the prompt's hover is gone",
    edits: [
      {
        file: `${SRC}/documents/index.ts`,
        find: "provideHover: (document, at) => hover(mine(document), at)",
        put: "provideHover: () => undefined",
      },
    ],
    file: "editor",
    noticedBy: "a place of the prompt says its section, its cost and its file",
  },
  {
    name: "quick fixes are removed",
    edits: [
      {
        file: `${FEATURES}/code_actions.py`,
        find: "and problem.path == path",
        put: "and False",
      },
    ],
    file: "editor",
    noticedBy: "a mistake has a squiggle, a problem, and a quick fix that removes both",
  },
  {
    name: "receipts have wrong figures",
    edits: [
      {
        file: `${SRC}/documents/receipt.ts`,
        find: /(const change = `\$\{exactly\()tokensBefore\)/,
        put: "$1tokensBefore + 1)",
      },
    ],
    file: "conversations",
    noticedBy: "a compaction says its very figures and what is lost, in the notice and in the receipt, and is undone",
  },
  {
    name: "F12 always leads to line 1",
    edits: [
      {
        file: `${SRC}/documents/index.ts`,
        find: "return source ? [location(source)] : [];",
        put: "return source ? [new vscode.Location(vscode.Uri.parse(source.uri), new vscode.Position(0, 0))] : [];",
      },
    ],
    file: "editor",
    noticedBy: "F12 leads from a place of the prompt to the same place of its file",
  },
  {
    name: "rows open files at the top",
    edits: [{ file: `${SRC}/panel/index.ts`, find: "selection: rangeOf(source.range),", put: "" }],
    file: "panel",
    noticedBy: "a row leads to the very lines behind it",
  },
  {
    name: "the Layers view is empty",
    edits: [
      {
        file: `${SRC}/panel/layers.ts`,
        find: /(export function layerNodes\([^)]*\): Node\[\] \{)/,
        put: "$1\n  return [];",
      },
    ],
    file: "panel",
    noticedBy: "the layers are those of the daemon, each with what it costs",
  },
  {
    name: "the status bar says ?",
    edits: [
      {
        file: `${SRC}/usage/statusBar.ts`,
        find: /(export function usageText[\s\S]*?\n {4}text: )`.*`,\n/,
        put: '$1"$(layers) ?",\n',
      },
    ],
    file: "panel",
    noticedBy: "the status bar says what another daemon counts",
  },
  {
    name: "every lens says 7 tokens",
    edits: [
      {
        file: `${FEATURES}/code_lens.py`,
        find: /(def tokens_text\(tokens: int, counter: TokenCounter\) -> str:\n.*\n {4}return ).*\n/,
        put: '$1"7 tokens"\n',
      },
    ],
    file: "editor",
    noticedBy: "lenses say what the file and each of its parts cost",
  },
  {
    name: "cache breaks are hidden",
    edits: [{ file: `${SRC}/panel/window.ts`, find: "if (broke) {", put: "if (broke && filled > 100) {" }],
    file: "chat",
    noticedBy:
      "an edit is told by a note; applied at once, it breaks a provider's cache, which is named with its price",
  },
  {
    name: "losses are never named",
    edits: [
      {
        file: `${SRC}/documents/receipt.ts`,
        find: "return lost.length > 0 ? `lost: ",
        put: "return lost.length < 0 ? `lost: ",
      },
    ],
    file: "conversations",
    noticedBy: "a compaction says its very figures and what is lost, in the notice and in the receipt, and is undone",
  },
  {
    name: "a window has a server of its own whatever the setting says",
    edits: [{ file: `${SRC}/server/launch.ts`, find: '...(isShared ? ["--remote=auto"] : [])', put: "" }],
    file: "shared",
    noticedBy: "all three use one daemon",
  },
  {
    name: "a restart leaves the shared daemon as it is",
    edits: [{ file: `${SRC}/server/daemon.ts`, find: "await this.parts.stopShared(launch);", put: "" }],
    file: "shared",
    noticedBy: "a restart in VS Code is one of the daemon, and the others go on with the next one",
  },
  {
    name: "a definition stays where it is",
    edits: [
      {
        file: "daemon/nexus_daemon/features/import_links.py",
        find: '{"uri": locate.uri(target), "range": locate.range(target, TOP)}',
        put: '{"uri": locate.uri(document.path), "range": locate.range(target, TOP)}',
      },
    ],
    file: "features",
    noticedBy: "F12 on an import opens its file, and the section's tokens stand behind its heading",
  },
  {
    name: "hovers say nothing of the value in force",
    edits: [
      {
        file: `${FEATURES}/answer_text.py`,
        find: "    if answer.value is not None:\n",
        put: "    if False:\n",
      },
    ],
    file: "features",
    noticedBy: "a hover on a key says what it does, its value, and which file decides",
  },
  {
    name: "a key that is there is offered once more",
    edits: [
      {
        file: `${FEATURES}/completion.py`,
        find: "unique = {key.name: key for key in reversed(missing_keys)}",
        put: "unique = {str(n): key for n, key in enumerate([*missing_keys, *missing_keys])}",
      },
    ],
    file: "features",
    noticedBy: "a key is completed with its value, once",
  },
  {
    name: "a rename forgets the rules that name a server",
    edits: [
      {
        file: "context/nexus_context/assistants/views/server_uses.py",
        find: '    is_rule = tool_suffix != text and (not tool_suffix or tool_suffix.startswith(("__", "(")))\n',
        put: "    is_rule = False\n",
      },
    ],
    file: "features",
    noticedBy: "F2 gives a server another name in every file that names it",
  },
  {
    name: "a button of the window forgets its MCP server",
    edits: [
      { file: `${SRC}/panel/index.ts`, find: "executeCommand(...found, ...about)", put: "executeCommand(...found)" },
    ],
    file: "mcp",
    noticedBy: "a server that fails says why in the panel, which leads to its log and to its line",
  },
  {
    name: "a question that ended still takes answers",
    edits: [{ file: `${SRC}/chat/toolQuestions.ts`, find: "this.open.delete(id);", put: "" }],
    file: "provider",
    noticedBy: "a question that is open when the turn is cancelled is over: its button allows nothing",
  },
];

/**
 * What the files of a breakage become: file → text. Throws where an edit does not apply any more.
 * @param {string} root of the repository
 * @param {Breakage} breakage
 */
export function brokenTexts(root, { name, edits }) {
  const texts = new Map();
  for (const { file, find, put } of edits) {
    const text = texts.get(file) ?? readFileSync(join(root, file), "utf8");
    const parts = text.split(find);
    const times = typeof find === "string" ? parts.length - 1 : [...text.matchAll(new RegExp(find, "g"))].length;
    if (times !== 1) {
      throw new Error(`"${name}" does not apply: ${find} occurs ${times} times in ${file}, not once. Change the edit.`);
    }
    texts.set(file, typeof find === "string" ? parts.join(put) : text.replace(find, put));
  }
  return texts;
}
