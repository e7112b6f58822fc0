/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/** The bar of the window with all that stands around it. See `paint` for the rules. */
import type { Action, Bar, Fact, Remark, Segment } from "../window";
import { button, type PageEvents } from "./action";
import { type Entry, legendView } from "./legend";
import { make, setAttribute, setChildren, setHidden, setStyle, setText } from "./patch";
import { readersView } from "./readers";

type Scale = "window" | "used";

const SECOND_MS = 1_000;

export interface BarView {
  readonly element: HTMLElement;
  show(model: Bar): void;
  setScale(scale: Scale | undefined): void;
}

export function barView(events: PageEvents): BarView {
  const stale = make("p", "stale");
  const head = headView(events);
  const strip = make("div", "strip");
  strip.setAttribute("role", "img");
  const marks = make("div", "marks");
  marks.setAttribute("aria-hidden", "true");
  const track = make("div", "track", strip, marks);
  const scales = scaleView((scale) => {
    chosen = scale;
    events.onScale(scale);
    if (shown) show(shown);
  });
  const legend = legendView({
    onOpen: (part) => events.send({ type: "reveal", part }),
    onPoint: (part) => point(strip, part),
  });
  const remarks = make("ul", "remarks");
  const facts = make("dl", "facts");
  const readers = readersView(events);
  const [top, bar] = [
    [stale, head.element],
    [track, scales.element, legend.element],
  ];
  const orders = {
    own: [...top, ...bar, remarks, facts, readers.element],
    assistant: [...top, remarks, readers.element, ...bar, facts],
  };
  const element = make("section", "window");
  element.dataset.vscodeContext = JSON.stringify({ webviewSection: "window" });
  let chosen: Scale | undefined;
  let shown: Bar | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  strip.addEventListener("click", (event) => {
    const { part } = (event.target as HTMLElement).dataset;
    if (part) events.send({ type: "reveal", part });
  });
  strip.addEventListener("mouseover", (event) => legend.point((event.target as HTMLElement).dataset.key));
  strip.addEventListener("mouseleave", () => legend.point(undefined));

  function show(model: Bar): void {
    const order = model.assistant === undefined ? "own" : "assistant";
    if (element.dataset.order !== order) element.replaceChildren(...orders[order]);
    setAttribute(element, "data-order", order);
    shown = model;
    const scale = chosen ?? model.scale;
    setAttribute(element, "data-level", model.level);
    setAttribute(element, "data-scale", scale);
    setAttribute(element, "data-stale", model.stale === undefined ? null : "");
    setHidden(stale, model.stale === undefined);
    setText(stale, model.stale ?? "");
    head.show(model);
    scales.show(scale);
    setAttribute(strip, "aria-label", model.spoken);
    paintStrip(strip, model, scale);
    paintMarks(marks, model, scale);
    legend.show(entriesOf(model));
    paintRemarks(remarks, model.remarks, events);
    paintFacts(facts, model.facts, events);
    tick(model);
    readers.show(model.readers);
  }

  /** Facts that count down are painted each second, as long as one does. */
  function tick(model: Bar): void {
    clearTimeout(timer);
    timer = undefined;
    if (!model.facts.some(({ countdown }) => countdown && countdown.until > Date.now())) return;
    timer = setTimeout(() => {
      paintFacts(facts, model.facts, events);
      tick(model);
    }, SECOND_MS);
  }

  return {
    element,
    show,
    setScale(scale) {
      chosen = scale;
    },
  };
}

function headView(events: PageEvents) {
  const agent = make("span", "who-name");
  const back = button({ id: "stopViewingAs", label: "Back to your view" }, events, "link");
  const viewing = make("div", "who", make("span", "who-label", "Viewing as "), agent, back);
  const assistant = button({ id: "chooseView", label: "" }, events, "who-name");
  const reason = make("span", "who-label");
  const view = make("div", "who view", assistant, reason);
  const used = make("span", "used");
  const of = make("span", "of");
  const percent = make("span", "percent");
  const folder = button({ id: "switchFolder", label: "" }, events, "crumb");
  const session = button({ id: "switchSession", label: "" }, events, "crumb");
  const model = button({ id: "pickModel", label: "" }, events, "crumb model");
  const figures = make("div", "figures", used, percent);
  const own = button({ id: "chooseView", label: "Nexus" }, events, "crumb");
  const dot = make("span", "dot", "·");
  const slash = make("span", "dot", "/");
  const measure = make("div", "place measure", of, make("span", "dot", "·"), model);
  const place = make("div", "place", own, dot, folder, slash, session);
  assistant.title = "Choose whose context is shown";
  return {
    element: make("header", "head", viewing, view, figures, measure, place),
    show(shown: Bar) {
      setHidden(viewing, shown.agent === undefined);
      setText(agent, shown.agent ?? "");
      setHidden(view, shown.assistant === undefined);
      setText(assistant, shown.assistant ?? "");
      setText(reason, shown.reason === undefined ? "" : `: ${shown.reason}`);
      setHidden(own, shown.assistant !== undefined);
      setHidden(dot, shown.assistant !== undefined);
      setAttribute(own, "title", [shown.reason, assistant.title].filter(Boolean).join(". "));
      setText(used, shown.used);
      setText(of, `of ${shown.of} tokens`);
      setText(percent, shown.percent);
      setText(model, shown.model);
      const counted = `Counted for this model, ${shown.counter}`;
      setAttribute(model, "title", shown.assistant === undefined ? `${counted}. Pick another` : counted);
      model.disabled = shown.assistant !== undefined;
      setHidden(session, shown.assistant !== undefined);
      setHidden(slash, shown.assistant !== undefined);
      setText(folder, shown.folder);
      setAttribute(folder, "title", "Switch folder");
      setText(session, shown.agent === undefined ? shown.session : `agent ${shown.agent}`);
      setAttribute(session, "title", "Switch conversation");
    },
  };
}

function scaleView(onChoose: (scale: Scale) => void) {
  const options: [Scale, string, string][] = [
    ["window", "Window", "The bar is the whole window of the model"],
    ["used", "Used", "The bar is what is used"],
  ];
  const buttons = options.map(([scale, label, title]) => {
    const made = make("button", "scale", label);
    made.type = "button";
    made.title = title;
    made.addEventListener("click", () => onChoose(scale));
    return [scale, made] as const;
  });
  const element = make("div", "scales", ...buttons.map(([, made]) => made));
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", "Scale of the bar");
  return {
    element,
    show(scale: Scale) {
      for (const [one, made] of buttons) setAttribute(made, "aria-pressed", String(one === scale));
    },
  };
}

function paintStrip(strip: HTMLElement, model: Bar, scale: Scale): void {
  const rest = model.reserved && scale === "window" ? [{ key: "reserved", width: model.reserved.width }] : [];
  const free = scale === "window" ? [{ key: "free", width: model.free.width }] : [];
  const parts: { key: string; width: number; segment?: Segment }[] = [
    ...model.segments.map((segment) => ({ key: segment.part, width: segment.widths[scale], segment })),
    ...free,
    ...rest,
  ];
  setChildren(
    strip,
    parts,
    (part) => part.key,
    () => make("div", ""),
    (element, { key, width, segment }) => {
      setAttribute(element, "class", segment ? "segment" : key);
      setAttribute(element, "title", segment ? tooltipOf(segment) : titleOf(key, model));
      setStyle(element, "flex-grow", String(Number(width.toFixed(4))));
      if (!segment) return;
      setAttribute(element, "data-part", segment.part);
      setAttribute(element, "data-vscode-context", menuOf(segment.part));
      setStyle(element, "--colour", colourOf(segment.colour));
    },
  );
}

function tooltipOf({ spoken, holds }: Segment): string {
  return [`${spoken} of what is available`, holds].filter(Boolean).join("\n");
}

function titleOf(key: string, model: Bar): string {
  return key === "free"
    ? `Free: ${model.free.tokens} tokens, ${model.free.share} of what is available`
    : `Kept free for answers: ${model.reserved?.tokens} tokens`;
}

/** Which menu the editor opens on a part, by mouse and by key. */
function menuOf(part: string): string {
  return JSON.stringify({ webviewSection: "part", part, preventDefaultContextMenuItems: true });
}

function paintMarks(parent: HTMLElement, model: Bar, scale: Scale): void {
  setChildren(
    parent,
    scale === "window" ? model.marks : [],
    (mark) => mark.label,
    ({ tone }) => make("div", `mark ${tone}`),
    (element, mark) => {
      setAttribute(element, "title", mark.label);
      setStyle(element, "left", `${Number(mark.at.toFixed(2))}%`);
    },
  );
}

function entriesOf(model: Bar): Entry[] {
  const entries: Entry[] = model.segments.map((segment) => ({
    key: segment.part,
    title: segment.title,
    tokens: segment.tokens,
    share: segment.share,
    colour: colourOf(segment.colour),
    menu: menuOf(segment.part),
    tooltip: tooltipOf(segment),
    spoken: segment.spoken,
  }));
  const { free, reserved } = model;
  entries.push({
    key: "free",
    title: "Free",
    tokens: free.tokens,
    share: free.share,
    tooltip: titleOf("free", model),
    spoken: `Free: ${free.tokens} tokens, ${free.share}`,
  });
  if (reserved) {
    const title = "Kept for answers";
    entries.push({
      key: "reserved",
      title,
      tokens: reserved.tokens,
      share: "",
      tooltip: titleOf("reserved", model),
      spoken: `${title}: ${reserved.tokens} tokens`,
    });
  }
  return entries;
}

function point(strip: HTMLElement, key: string | undefined): void {
  for (const part of [...strip.children] as HTMLElement[]) {
    part.classList.toggle("pointed", key !== undefined && part.dataset.key === key);
  }
  strip.classList.toggle("pointing", key !== undefined);
}

function paintRemarks(parent: HTMLElement, remarks: readonly Remark[], events: PageEvents): void {
  setChildren(
    parent,
    remarks,
    ({ tone, action, source, text }) =>
      [tone, action ? keyOfAction(action) : text, source?.uri, source?.line]
        .filter((part) => part !== undefined)
        .join(":"),
    ({ tone, source }) => {
      const icon = make("span", "remark-icon");
      icon.setAttribute("aria-hidden", "true");
      const says = make(
        "span",
        "remark-text",
        ...(source ? [sourceButton(source, events), ": "] : []),
        make("span", ""),
      );
      return make("li", `remark ${tone}`, icon, says, make("span", "remark-action"));
    },
    (element, { text, action }) => {
      const [, says, place] = element.children;
      if (says?.lastElementChild) setText(says.lastElementChild as HTMLElement, text);
      if (place) paintAction(place, action, events);
    },
  );
}

function sourceButton({ label, uri, line }: NonNullable<Remark["source"]>, events: PageEvents): HTMLElement {
  const made = make("button", "link", label);
  made.type = "button";
  made.addEventListener("click", () => events.send({ type: "open", uri, line }));
  return made;
}

function paintFacts(parent: HTMLElement, facts: readonly Fact[], events: PageEvents): void {
  setChildren(
    parent,
    facts,
    (fact) => fact.label,
    ({ label }) => {
      const meter = make("div", "fact-meter", make("div", ""));
      meter.setAttribute("aria-hidden", "true"); // the text says it
      const value = make(
        "dd",
        "",
        make("span", "fact-text"),
        make("span", "fact-action"),
        meter,
        make("div", "fact-detail"),
      );
      return make("div", "fact", make("dt", "", label), value);
    },
    (element, fact) => {
      setAttribute(element, "data-tone", fact.tone);
      const [text, action, meter, detail] = [...(element.lastElementChild?.children ?? [])] as HTMLElement[];
      if (!text || !action || !meter || !detail) return;
      setText(text, textNow(fact, Date.now()));
      paintAction(action, fact.action, events);
      setHidden(meter, fact.filled === undefined);
      if (meter.firstElementChild)
        setStyle(meter.firstElementChild as HTMLElement, "width", `${Number((fact.filled ?? 0).toFixed(1))}%`);
      setText(detail, fact.detail ?? "");
      setHidden(detail, !fact.detail);
    },
  );
}

/** The text of a fact at a moment; of one that counts down, with what is left. */
function textNow({ text, countdown }: Fact, now: number): string {
  if (!countdown) return text;
  const left = Math.ceil((countdown.until - now) / 1_000);
  if (left <= 0) return countdown.after;
  return `${countdown.before} ${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
}

function paintAction(parent: Element, action: Action | undefined, events: PageEvents): void {
  setChildren(
    parent,
    action ? [action] : [],
    keyOfAction,
    (one) => button(one, events, "link"),
    (element, { label }) => setText(element, label),
  );
}

function keyOfAction({ id, server }: Action): string {
  return server === undefined ? id : `${id}:${server}`;
}

/** A theme colour's name as a style: `charts.blue` → `var(--vscode-charts-blue)`. */
function colourOf(name: string): string {
  return `var(--vscode-${name.replaceAll(".", "-")})`;
}
