/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/**
 * The page of the context window. It asks for a model, paints it, and says what the user does.
 *
 * 1. What was last shown is kept by the editor: a page that was hidden shows it at once.
 * 2. It says how wide it is: trees beside it cannot know.
 */
import type { FromPage, ToPage } from "../messages";
import type { WindowModel } from "../window";
import { type Page, page } from "./paint";

/** As in panel.css. */
const NARROW = "(width < 250px)";

interface Kept {
  readonly model?: WindowModel;
  readonly scale?: "window" | "used";
}

interface Host {
  postMessage(message: FromPage): void;
  getState(): Kept | undefined;
  setState(state: Kept): void;
}
declare function acquireVsCodeApi(): Host;

const host = acquireVsCodeApi();
let kept: Kept = host.getState() ?? {};

function keep(change: Kept): void {
  kept = { ...kept, ...change };
  host.setState(kept);
}

const painted: Page = page(element("root"), element("spoken"), {
  send: (message) => host.postMessage(message),
  onScale: (scale) => keep({ scale }),
});
painted.setScale(kept.scale);
if (kept.model) painted.show(kept.model);

window.addEventListener("message", (event: MessageEvent<ToPage>) => {
  if (event.data?.type !== "show") return;
  painted.show(event.data.model);
  keep({ model: event.data.model });
});
host.postMessage({ type: "ready" });
const narrow = window.matchMedia(NARROW);
const tellWidth = () => host.postMessage({ type: "width", narrow: narrow.matches });
narrow.addEventListener("change", tellWidth);
if (narrow.matches) tellWidth();

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return found;
}
