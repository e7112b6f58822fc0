/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/**
 * A model on the page: the bar with its legend, remarks and facts, or a notice.
 *
 * 1. What is there is changed, never made anew.
 * 2. The bar is a picture with a sentence; the legend is the list that the keyboard walks. One of its entries
 *    takes part in the order of tabs, the arrow keys go on from there, Enter shows the part in the tree.
 * 3. A screen reader is told of another level, or of a change of more than two in a hundred, not of every edit.
 */
import type { Notice, WindowModel } from "../window";
import { button, type PageEvents } from "./action";
import { barView } from "./bar";
import { make, setAttribute, setChildren, setHidden, setText } from "./patch";

export interface Page {
  show(model: WindowModel): void;
  setScale(scale: "window" | "used" | undefined): void;
}

/** How much the percentage must move to be spoken of. */
const WORTH_SAYING = 2;

export function page(root: HTMLElement, spoken: HTMLElement, events: PageEvents): Page {
  const notice = make("section", "notice");
  const bar = barView(events);
  let said: { level: string; percent: number } | undefined;

  function speak(model: WindowModel): void {
    if (model.kind === "notice") {
      said = undefined;
      setText(spoken, [model.title, model.text].filter(Boolean).join(". "));
      return;
    }
    if (model.stale !== undefined) {
      said = undefined;
      setText(spoken, model.stale);
      return;
    }
    const now = {
      level: model.level + (model.assistant ?? model.agent ?? ""),
      percent: Number.parseFloat(model.percent),
    };
    if (said?.level === now.level && Math.abs(said.percent - now.percent) < WORTH_SAYING) return;
    said = now;
    setText(spoken, model.spoken);
  }

  return {
    setScale: bar.setScale,
    show(model) {
      const wanted = model.kind === "notice" ? notice : bar.element;
      if (model.kind === "notice") paintNotice(notice, model, events);
      else bar.show(model);
      if (root.firstElementChild !== wanted) root.replaceChildren(wanted);
      speak(model);
    },
  };
}

function paintNotice(element: HTMLElement, model: Notice, events: PageEvents): void {
  if (!element.firstElementChild) {
    element.append(
      make("div", "progress"),
      make("h2", "notice-title"),
      make("p", "notice-text"),
      make("div", "notice-actions"),
    );
  }
  const [progress, title, text, actions] = [...element.children] as HTMLElement[];
  if (!progress || !title || !text || !actions) return;
  setAttribute(element, "data-tone", model.tone);
  setAttribute(element, "aria-busy", String(model.busy));
  setHidden(progress, !model.busy);
  setText(title, model.title);
  setText(text, model.text);
  setHidden(text, !model.text);
  paintActions(actions, model, events);
}

/** The first one is what to do, unless it is being done. */
function paintActions(parent: HTMLElement, { actions, busy }: Notice, events: PageEvents): void {
  setChildren(
    parent,
    actions,
    (action) => action.id,
    (action) => button(action, events, ""),
    (element, action) => {
      setText(element, action.label);
      setAttribute(element, "class", action === actions[0] && !busy ? "button" : "button secondary");
    },
  );
}
