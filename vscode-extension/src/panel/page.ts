/** The HTML of the panel's web page: a frame that its script fills. Nothing inline, nothing from elsewhere. */
import { randomBytes } from "node:crypto";

export interface PageParts {
  readonly script: string;
  readonly style: string;
  /** Where the page may load from: `webview.cspSource`. */
  readonly source: string;
  readonly nonce?: string;
}

export function pageHtml({ script, style, source, nonce = randomBytes(16).toString("base64url") }: PageParts): string {
  const policy = `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>Context Window</title>
</head>
<body>
<main id="root"></main>
<div id="spoken" class="unseen" role="status" aria-live="polite"></div>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>`;
}
