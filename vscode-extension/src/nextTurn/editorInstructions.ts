/**
 * Instruction files that VS Code will attach to the next chat message by itself. Rules, as of VS Code 1.139
 * (`ComputeAutomaticInstructions`); settings that an older version does not have count as off there, too:
 *
 * 1. In the root of each workspace folder: AGENTS.md (`chat.useAgentsMdFile`), CLAUDE.md, CLAUDE.local.md and
 *    .claude/CLAUDE.md (`chat.useClaudeMdFile`), .github/copilot-instructions.md
 *    (`github.copilot.chat.codeGeneration.useInstructionFiles`). In the home directory: .claude/CLAUDE.md and
 *    .copilot/copilot-instructions.md.
 * 2. In the directories of `chat.instructionsFilesLocations`, DEEPEST deep: files whose `applyTo` is for all
 *    files. Rules of Claude Code (.claude/rules) are for all files unless they name `paths`.
 *    `chat.includeApplyingInstructions` off: none of these.
 * 3. Files for some files only, what extensions and the user's profile bring, and directories named by a glob
 *    are not found here: what was attached to the last message says more (`nextTurn`).
 */
import { homedir } from "node:os";
import * as vscode from "vscode";

const DEEPEST = 5;
/** Files of one directory that are looked at. */
const MOST_FILES = 200;
const SUFFIX = ".instructions.md";
const COPILOT = "copilot-instructions.md";
const CLAUDE_RULES = ".claude/rules";
const FOR_ALL: ReadonlySet<string> = new Set(["**", "**/*", "*"]);

/** The files, in no special order. */
export async function findEditorInstructions(): Promise<vscode.Uri[]> {
  const chat = vscode.workspace.getConfiguration("chat");
  if (chat.get<boolean>("experimental.collectInstructionsInExtension") === true) return [];
  const lists = await Promise.all([rootFiles(chat), applyingFiles(chat)]);
  return [...new Map(lists.flat().map((uri) => [uri.toString(), uri])).values()];
}

/** Whether a change of settings can change what is found. */
export function affectsEditorInstructions(change: vscode.ConfigurationChangeEvent): boolean {
  return change.affectsConfiguration("chat") || change.affectsConfiguration("github.copilot.chat");
}

async function rootFiles(chat: vscode.WorkspaceConfiguration): Promise<vscode.Uri[]> {
  const copilot = vscode.workspace.getConfiguration("github.copilot.chat.codeGeneration");
  const readsCopilot = copilot.get<boolean>("useInstructionFiles") === true;
  const readsClaude = chat.get<boolean>("useClaudeMdFile") === true;
  const inRoots = [
    ...(chat.get<boolean>("useAgentsMdFile") === true ? ["AGENTS.md"] : []),
    ...(readsClaude ? ["CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"] : []),
    ...(readsCopilot ? [`.github/${COPILOT}`] : []),
  ];
  const inHome = [...(readsClaude ? [".claude/CLAUDE.md"] : []), ...(readsCopilot ? [`.copilot/${COPILOT}`] : [])];
  const candidates = [
    ...roots().flatMap((root) => inRoots.map((name) => vscode.Uri.joinPath(root, name))),
    ...inHome.map((name) => vscode.Uri.joinPath(home(), name)),
  ];
  return await kept(candidates, isFile);
}

async function applyingFiles(chat: vscode.WorkspaceConfiguration): Promise<vscode.Uri[]> {
  if (chat.get<boolean>("includeApplyingInstructions") !== true) return [];
  const locations = chat.get<Record<string, boolean>>("instructionsFilesLocations") ?? {};
  const directories = Object.entries(locations).flatMap(([path, isOn]) =>
    isOn && !path.includes("*") ? directoriesOf(path) : [],
  );
  const lists = await Promise.all(directories.map((directory) => filesBelow(directory, 0)));
  return await kept(lists.flat(), isForAll);
}

/** The directories that one entry of the setting names: in each folder, or in the home directory. */
function directoriesOf(path: string): vscode.Uri[] {
  const trimmed = path.trim();
  if (trimmed.startsWith("~/")) return [vscode.Uri.joinPath(home(), trimmed.slice(2))];
  return roots().map((root) => vscode.Uri.joinPath(root, trimmed));
}

async function filesBelow(directory: vscode.Uri, depth: number): Promise<vscode.Uri[]> {
  let entries: [string, vscode.FileType][];
  try {
    entries = await vscode.workspace.fs.readDirectory(directory);
  } catch {
    return []; // most folders have no such directory
  }
  const lists = entries.slice(0, MOST_FILES).map(async ([name, type]) => {
    const uri = vscode.Uri.joinPath(directory, name);
    if ((type & vscode.FileType.File) !== 0) return isInstructions(uri) ? [uri] : [];
    const isRoot = depth === 0 && roots().some((root) => root.toString() === directory.toString());
    return type === vscode.FileType.Directory && depth < DEEPEST && !isRoot ? await filesBelow(uri, depth + 1) : [];
  });
  return (await Promise.all(lists)).flat();
}

function isInstructions({ path }: vscode.Uri): boolean {
  return path.endsWith(SUFFIX) || path.endsWith(`/${COPILOT}`) || isClaudeRule(path);
}

function isClaudeRule(path: string): boolean {
  return path.includes(`/${CLAUDE_RULES}/`) && path.endsWith(".md") && !path.endsWith("/README.md");
}

async function isForAll(uri: vscode.Uri): Promise<boolean> {
  const patterns = patternsOf(await textOf(uri), isClaudeRule(uri.path));
  return patterns.some((pattern) => FOR_ALL.has(pattern));
}

/** The patterns of an instruction file's front matter; of a rule of Claude Code without any, that for all files. */
export function patternsOf(text: string, isRule: boolean): string[] {
  const header = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text)?.[1] ?? "";
  const field = isRule ? /^paths:[ \t]*(.*(?:\r?\n[ \t]+-.*)*)/m.exec(header) : /^applyTo:[ \t]*(.*)/m.exec(header);
  if (field === null) return isRule ? ["**"] : [];
  return (field[1] ?? "")
    .split(/[,\n]/)
    .map((pattern) => pattern.replace(/^[\s\-["']+|[\s\]"']+$/g, ""))
    .filter((pattern) => pattern !== "");
}

async function textOf(uri: vscode.Uri): Promise<string> {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
  if (open !== undefined) return open.getText();
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  } catch {
    return "";
  }
}

async function isFile(uri: vscode.Uri): Promise<boolean> {
  try {
    return ((await vscode.workspace.fs.stat(uri)).type & vscode.FileType.File) !== 0;
  } catch {
    return false;
  }
}

async function kept(uris: readonly vscode.Uri[], fits: (uri: vscode.Uri) => Promise<boolean>): Promise<vscode.Uri[]> {
  const answers = await Promise.all(uris.map(fits));
  return uris.filter((_, index) => answers[index] === true);
}

function roots(): vscode.Uri[] {
  return (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri);
}

function home(): vscode.Uri {
  return vscode.Uri.file(homedir());
}
