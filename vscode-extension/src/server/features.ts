/**
 * What VS Code has itself in some languages is left to it: the outline, folding and selection of JSON and Markdown, and
 * the completion of its own `mcp.json`. Hovers, links, renames and hints add what it does not know.
 */
import type { TextDocument } from "vscode";
import type { Middleware } from "vscode-languageclient/node";

const STRUCTURED = new Set(["json", "jsonc", "markdown"]);
const OWN_COMPLETION = /\/\.vscode\/mcp\.json$/;

const hasStructure = ({ languageId }: TextDocument) => STRUCTURED.has(languageId);

export const FEATURES: Middleware = {
  provideDocumentSymbols: (document, token, next) => (hasStructure(document) ? undefined : next(document, token)),
  provideFoldingRanges: (document, context, token, next) =>
    hasStructure(document) ? undefined : next(document, context, token),
  provideSelectionRanges: (document, positions, token, next) =>
    hasStructure(document) ? undefined : next(document, positions, token),
  provideCompletionItem: (document, position, context, token, next) =>
    OWN_COMPLETION.test(document.uri.path) ? undefined : next(document, position, context, token),
};
