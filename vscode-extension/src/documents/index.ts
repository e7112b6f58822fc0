/**
 * Virtual documents, `nexus-context:`: the exact system prompt, the next request, the settings in force, the receipt of
 * a compaction, what changed in what an MCP server offers.
 *
 * 1. They are read only, and follow what they show: a change that the daemon tells shows within a moment.
 * 2. In the prompt and the settings every place leads to its source: definition, hover, a link per heading.
 * 3. What they are about is in the URI: after a reload of the window they are read again.
 * 4. A document that the daemon cannot give is not opened: the user is told why, and what to do.
 */
import { homedir } from "node:os";
import * as vscode from "vscode";
import { isFolder } from "../focus";
import type { Nexus } from "../nexus";
import type { Location, Preview, Provenance, Range, ToolChange } from "../protocol";
import { exactly, plural } from "../usage/figures";
import { type EffectiveText, effectiveText } from "./effective";
import { fragmentAt, type Section, sections, sourceOf } from "./mappedText";
import { ReadOnlyFiles } from "./readOnlyFiles";
import { receiptText } from "./receipt";
import { requestJson, requestText } from "./request";

export const SCHEME = "nexus-context";
const SETTLE_MS = 50;

export type Kind = "prompt" | "request" | "request.json" | "effective" | "receipt" | "server";

export interface About {
  readonly kind: Kind;
  readonly folder: string;
  readonly session?: string;
  readonly agent?: string;
  /** Of a prompt: another assistant whose texts it has. */
  readonly assistant?: string;
  /** Of a receipt: the compaction's id. */
  readonly compaction?: string;
  /** Of what an MCP server offers: its name. */
  readonly server?: string;
  /** Of what an MCP server offers: what the user approved, or what it is now. */
  readonly side?: "approved" | "now";
}

export interface Documents extends vscode.Disposable {
  /**
   * Opens a document and selects the range. Rejects with NexusError where the daemon cannot give it: then nothing
   * is opened.
   */
  show(about: About, folderName: string, selection?: vscode.Range): Promise<void>;
  /** Opens what an MCP server offers now beside what of that was approved, where the two differ. */
  compare(about: About, folderName: string): Promise<void>;
}

const NAMES: Record<Kind, string> = {
  prompt: "system prompt.md",
  request: "next request.md",
  "request.json": "next request.json",
  effective: "effective configuration.jsonc",
  receipt: "compaction receipt.md",
  server: "tools.txt",
};

export function uriOf(about: About, folderName: string): vscode.Uri {
  const of = about.kind === "receipt" ? about.session : (about.server ?? about.assistant ?? about.agent);
  const who = of ? ` (${of})` : "";
  const name = NAMES[about.kind].replace(/(?=\.\w+$)/, who.replaceAll("/", "-"));
  return vscode.Uri.from({ scheme: SCHEME, path: `/${folderName}/${name}`, query: JSON.stringify(about) });
}

export function aboutOf(uri: vscode.Uri): About | undefined {
  try {
    const about = JSON.parse(uri.query) as About;
    return about.kind in NAMES && typeof about.folder === "string" ? about : undefined;
  } catch {
    return undefined;
  }
}

/** What is known of an open document beside its text. */
type Known = { preview: Preview } | { effective: EffectiveText } | Record<string, never>;

export function registerDocuments(nexus: Nexus): Documents {
  const known = new Map<string, Known>();
  const files = new ReadOnlyFiles(SCHEME, async (uri) => {
    const about = aboutOf(uri);
    if (!about) throw new Error("Nexus does not know this document: another version of the extension made it.");
    const [text, what] = await read(nexus, about);
    known.set(uri.toString(), what);
    return text;
  });
  const refresh = refresher(files);
  const selector = { scheme: SCHEME };
  const mine = (document: vscode.TextDocument): Known => known.get(document.uri.toString()) ?? {};

  const registered = [
    files,
    vscode.workspace.onDidCloseTextDocument((document) => known.delete(document.uri.toString())),
    nexus.onDidChangeContext((change) => refresh((about) => isSame(about, change))),
    nexus.onDidChangeSession((change) =>
      refresh((about) => {
        if (!isSame(about, change)) return false;
        if (about.kind === "receipt") return change.reason === "undone";
        return about.kind.startsWith("request") && about.session === change.session;
      }),
    ),
    nexus.onDidChangeServer((change) => refresh((about) => about.server === change.server && isSame(about, change))),
    nexus.onDidChangeAgent((change) => refresh((about) => about.agent === change.agentId && isSame(about, change))),
    nexus.onDidChangeState((state) => state === "ready" && refresh(() => true)),
    vscode.languages.registerDefinitionProvider(selector, {
      provideDefinition: (document, at) => definition(mine(document), at),
    }),
    vscode.languages.registerHoverProvider(selector, { provideHover: (document, at) => hover(mine(document), at) }),
    vscode.languages.registerDocumentLinkProvider(selector, {
      provideDocumentLinks: (document) => links(mine(document), document),
    }),
    vscode.languages.registerFoldingRangeProvider(selector, {
      provideFoldingRanges: (document) => folding(mine(document)),
    }),
    vscode.languages.registerDocumentSymbolProvider(
      selector,
      { provideDocumentSymbols: (document) => symbols(mine(document)) },
      { label: "Nexus" },
    ),
  ];
  return {
    async show(about, folderName, selection) {
      const uri = uriOf(about, folderName);
      await files.prepare(uri);
      const document = await vscode.workspace.openTextDocument(uri);
      await vscode.window.showTextDocument(document, { preview: true, ...(selection ? { selection } : {}) });
    },
    async compare(about, folderName) {
      const [approved, now] = [
        uriOf({ ...about, side: "approved" }, folderName),
        uriOf({ ...about, side: "now" }, folderName),
      ];
      await Promise.all([files.prepare(approved), files.prepare(now)]);
      await vscode.commands.executeCommand("vscode.diff", approved, now, `${about.server}: approved ↔ offered now`);
    },
    dispose() {
      for (const one of registered) one.dispose();
    },
  };
}

function isSame(about: About, change: { workspaceFolder: string }): boolean {
  return isFolder(change.workspaceFolder, vscode.Uri.parse(about.folder));
}

async function read(nexus: Nexus, about: About): Promise<[string, Known]> {
  const workspaceFolder = about.folder;
  const agent = about.agent ? { agent: about.agent } : {};
  const session = about.session && !about.agent ? { session: about.session } : {};
  switch (about.kind) {
    case "prompt": {
      const who = about.assistant ? { assistant: about.assistant } : agent;
      const preview = await nexus.request("nexus/context/preview", { workspaceFolder, ...who });
      return [preview.text, { preview }];
    }
    case "effective": {
      const config = await nexus.request("nexus/config/effective", { workspaceFolder, ...agent });
      const effective = effectiveText(config, placeName);
      return [effective.text, { effective }];
    }
    case "request":
    case "request.json": {
      // without a message and without a provider's form: nothing is compacted, nothing is delivered
      const context = await nexus.request("nexus/context/assemble", { workspaceFolder, ...session, ...agent });
      return [about.kind === "request" ? requestText(context) : requestJson(context), {}];
    }
    case "receipt": {
      const compaction = about.compaction === undefined ? {} : { compaction: about.compaction };
      const kept = await nexus.request("nexus/session/receipt", { workspaceFolder, ...session, ...compaction });
      return [receiptText(kept.session, kept.receipt, kept.inForce), {}];
    }
    case "server": {
      const { servers } = await nexus.request("nexus/mcp/servers", { workspaceFolder });
      const server = servers.find(({ name }) => name === about.server);
      return [changesText(server?.changes ?? [], about.side ?? "now"), {}];
    }
  }
}

/** One side of what changed in what a server offers: the name of each place, and its text. */
export function changesText(changes: readonly ToolChange[], side: "approved" | "now"): string {
  if (changes.length === 0) return "It offers what you approved.\n";
  const other = side === "approved" ? "added" : "removed";
  return changes
    .filter(({ kind }) => kind !== other)
    .map(({ place, words }) => {
      const text = words.filter(({ state }) => state !== other).map((word) => word.text);
      return `${place}\n\n${text.join("")}\n`;
    })
    .join("\n");
}

/** Tells the editor of the open documents that changed, once for what comes within a moment. */
function refresher(files: ReadOnlyFiles): (which: (about: About) => boolean) => void {
  const due = new Map<string, vscode.Uri>();
  const tell = () => {
    const uris = [...due.values()];
    due.clear();
    files.changed(uris);
  };
  return (which) => {
    for (const { uri } of vscode.workspace.textDocuments) {
      const about = uri.scheme === SCHEME ? aboutOf(uri) : undefined;
      if (!about || !which(about)) continue;
      if (due.size === 0) setTimeout(tell, SETTLE_MS);
      due.set(uri.toString(), uri);
    }
  };
}

function definition(known: Known, at: vscode.Position): vscode.Location[] {
  if ("preview" in known) {
    const source = sourceOf(known.preview.fragments, at);
    return source ? [location(source)] : [];
  }
  if (!("effective" in known)) return [];
  return chainAt(known.effective, at)
    .filter((one) => one.wins && isInFile(one))
    .map(location);
}

function hover(known: Known, at: vscode.Position): vscode.Hover | undefined {
  if ("preview" in known) return promptHover(known.preview, at);
  if (!("effective" in known)) return undefined;
  const chain = chainAt(known.effective, at);
  if (chain.length === 0) return undefined;
  return new vscode.Hover(new vscode.MarkdownString(chain.map(chainLine).join("\n\n")));
}

function promptHover({ fragments }: Preview, at: vscode.Position): vscode.Hover | undefined {
  const fragment = fragmentAt(fragments, at);
  if (!fragment) return undefined;
  const section = sections(fragments).find((one) => contains(one.range, at));
  const source = sourceOf(fragments, at);
  const text = new vscode.MarkdownString();
  text.appendMarkdown("**").appendText(fragment.title).appendMarkdown("**");
  if (fragment.layer) text.appendMarkdown(" · layer ").appendText(fragment.layer);
  text.appendMarkdown(`\n\n${plural(section?.tokens ?? fragment.tokens, "token")} in this section\n\n`);
  if (source) text.appendMarkdown(`[${placeName(source.uri)}:${source.range.start.line + 1}](${linkOf(source)})`);
  else text.appendMarkdown("written by Nexus");
  return new vscode.Hover(text, rangeOf(fragment.range));
}

function chainLine(one: Provenance): string {
  const value = `\`${JSON.stringify(one.value).replaceAll("`", "'")}\``;
  const fate = one.wins ? "**in force**" : one.ignored ? "may not be set there" : "overridden";
  const file = `[${placeName(one.uri)}:${one.range.start.line + 1}](${linkOf(one)})`;
  const where = isInFile(one) ? file : one.layer === "agent" ? "granted" : "default";
  return `${value} · ${one.layer} · ${where} · ${fate}`;
}

/** Whether a value stands in a file: not what is the default, nor what an agent was granted. */
function isInFile({ layer }: Provenance): boolean {
  return layer !== "built-in" && layer !== "agent";
}

/** A link where a section says its source, and at its first line. */
function links(known: Known, document: vscode.TextDocument): vscode.DocumentLink[] {
  if (!("preview" in known)) return [];
  const { fragments } = known.preview;
  return sections(fragments).flatMap((section) => {
    const made: vscode.DocumentLink[] = [];
    const last = Math.min(section.range.start.line + 3, section.range.end.line, document.lineCount - 1);
    for (let line = section.range.start.line; line <= last; line++) {
      const text = document.lineAt(line).text;
      const found = /^Source: (?=\S)/.exec(text);
      const body = fragments.find(
        (one) => one.verbatim && one.source && one.range.start.line > line && one.title === section.title,
      );
      if (!found || !body?.source) continue;
      const link = new vscode.DocumentLink(
        new vscode.Range(line, found[0].length, line, text.length),
        target(body.source),
      );
      link.tooltip = `Open ${placeName(body.source.uri)}`;
      made.push(link);
    }
    return made;
  });
}

function folding(known: Known): vscode.FoldingRange[] {
  if (!("preview" in known)) return [];
  return whole(known.preview)
    .filter((one) => one.last > one.range.start.line)
    .map((one) => new vscode.FoldingRange(one.range.start.line, one.last, vscode.FoldingRangeKind.Region));
}

function symbols(known: Known): vscode.DocumentSymbol[] {
  if (!("preview" in known)) return [];
  return whole(known.preview).map((one) => {
    const range = rangeOf(one.range);
    const detail = `${exactly(one.tokens)} tokens`;
    return new vscode.DocumentSymbol(
      one.title || "Text",
      detail,
      vscode.SymbolKind.String,
      range,
      new vscode.Range(range.start, range.start),
    );
  });
}

/** Sections with their last line: one that ends at the begin of a line ends on the line before. */
function whole({ fragments }: Preview): (Section & { last: number })[] {
  return sections(fragments).map((one) => {
    const { start, end } = one.range;
    return { ...one, last: end.character === 0 && end.line > start.line ? end.line - 1 : end.line };
  });
}

function chainAt({ setBy }: EffectiveText, at: vscode.Position): readonly Provenance[] {
  return setBy.get(at.line) ?? [];
}

function contains(range: Range, at: vscode.Position): boolean {
  return rangeOf(range).contains(at);
}

export function rangeOf({ start, end }: Range): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

function location(source: Location): vscode.Location {
  return new vscode.Location(vscode.Uri.parse(source.uri), rangeOf(source.range));
}

function target({ uri, range }: Location): vscode.Uri {
  return vscode.Uri.parse(uri).with({ fragment: `L${range.start.line + 1},${range.start.character + 1}` });
}

function linkOf(source: Location): string {
  return target(source).toString().replaceAll(")", "%29");
}

/** A file as people name it: from its workspace folder, else from the home directory. */
function placeName(uri: string): string {
  const path = vscode.workspace.asRelativePath(vscode.Uri.parse(uri), true);
  const home = `${homedir()}/`;
  return (path.startsWith(home) ? `~/${path.slice(home.length)}` : path).replaceAll("]", "\\]");
}
