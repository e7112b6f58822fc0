/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/** Buttons that say what the user wants; what that is, the extension knows. */
import type { FromPage } from "../messages";
import type { Action } from "../window";
import { make } from "./patch";

export interface PageEvents {
  send(message: FromPage): void;
  onScale(scale: "window" | "used"): void;
}

export function button(action: Action, events: PageEvents, className: string): HTMLButtonElement {
  const made = make("button", className, action.label);
  made.type = "button";
  const { id, server } = action;
  if (server !== undefined) made.setAttribute("aria-label", `${action.label} ${server}`);
  made.addEventListener("click", () => events.send({ type: "act", id, ...(server === undefined ? {} : { server }) }));
  return made;
}
