/**
 * What the panel knows of the daemon: asked for views that are visible, renewed by notifications.
 *
 * 1. Each part is asked for by itself: a failure of one leaves the others as they are.
 * 2. A change of the folder's own conversation brings its figures along: they are shown at once, and not asked for.
 * 3. Another folder, conversation or agent: the old figures stay until the new ones are there.
 */
import * as vscode from "vscode";
import { isFolder, nameOf } from "../focus";
import type { Focus, Nexus } from "../nexus";
import type {
  AgentDidChange,
  AgentInfo,
  ContextDidChange,
  EffectiveConfig,
  InFolder,
  Layers,
  Preview,
  Requests,
  SessionDidChange,
  SessionInfo,
  TokenUsage,
} from "../protocol";
import { type Asked, asked } from "./asked";
import type { LastCompaction } from "./window";
import { when } from "./wording";

export type View = "window" | "rows" | "layers" | "sessions" | "agents";

/** Whose figures they are. */
export interface Place {
  readonly folder: { readonly uri: string; readonly name: string };
  readonly session: string;
  readonly agent: string | undefined;
}

interface Parts {
  usage: { place: Place; usage: TokenUsage };
  layers: Layers;
  preview: Preview;
  config: EffectiveConfig;
  sessions: readonly SessionInfo[];
  agents: readonly AgentInfo[];
}
type Part = keyof Parts;

export interface Feed extends vscode.Disposable {
  readonly nexus: Nexus;
  readonly place: Place | undefined;
  readonly compaction: LastCompaction | undefined;
  get<P extends Part>(part: P): Asked<Parts[P]>;
  /** Ask for everything again. */
  refresh(): void;
  look(view: View, visible: boolean): void;
}

/** What each view is made of, the part that it waits for first. */
export const NEEDS: Readonly<Record<View, readonly Part[]>> = {
  window: ["usage", "layers", "config"],
  rows: ["usage", "config"],
  layers: ["layers", "config", "preview"],
  sessions: ["sessions"],
  agents: ["agents"],
};
const ALL = Object.keys(NEEDS) as View[];

/** `show` is called with the views whose parts have changed. */
export function feed(nexus: Nexus, focus: Focus, show: (views: readonly View[]) => void): Feed {
  const looking = new Set<View>();
  let compaction: (LastCompaction & { key: string }) | undefined;
  let shownPlace = keyOf(placeOf(focus));

  const parts = makeParts(nexus, focus, (part) => {
    show(ALL.filter((view) => NEEDS[view].includes(part)));
  });
  const every = Object.values(parts) as Asked<unknown>[];
  const poke = (...names: Part[]) => {
    for (const name of names) parts[name].poke();
  };

  function look(): void {
    const answers = nexus.state === "ready" && focus.folder !== undefined;
    for (const part of Object.keys(parts) as Part[]) {
      parts[part].look(answers && [...looking].some((view) => NEEDS[view].includes(part)));
    }
  }

  function contextChanged(change: ContextDidChange): void {
    const place = placeOf(focus);
    if (!place || !isFolder(change.workspaceFolder, focus.folder)) return;
    const own = place.session === "main" && place.agent === undefined;
    if (own) parts.usage.put({ place, usage: change.usage });
    else poke("usage");
    if (change.reason === "session" || change.reason === "compaction") return;
    poke("layers", "preview", "config");
    if (change.reason !== "tokens") poke("agents");
  }

  function sessionChanged(change: SessionDidChange): void {
    const place = placeOf(focus);
    if (!place || !isFolder(change.workspaceFolder, focus.folder)) return;
    poke("sessions");
    if (change.session !== place.session) return;
    if (change.reason === "compacted" || change.reason === "undone") {
      const time = when(new Date().toISOString(), new Date());
      compaction = { key: keyOf(place), undone: change.reason === "undone", time };
    } else if (change.reason === "cleared") compaction = undefined;
    if (place.session !== "main" || place.agent !== undefined || change.reason !== "appended") poke("usage");
  }

  function agentChanged(change: AgentDidChange): void {
    const place = placeOf(focus);
    if (!place || !isFolder(change.workspaceFolder, focus.folder)) return;
    poke("agents");
    if (change.agentId !== place.agent) return;
    if (change.reason === "disposed") focus.setAgent(undefined);
    else poke("usage", "layers", "preview", "config");
  }

  function focusChanged(): void {
    const key = keyOf(placeOf(focus));
    if (key === shownPlace) return;
    shownPlace = key;
    for (const part of every) part.renew();
    look();
    show(ALL);
  }

  const listening = [
    nexus.onDidChangeState(() => {
      for (const part of every) if (nexus.state === "ready") part.renew();
      look();
      show(ALL);
    }),
    nexus.onDidChangeContext(contextChanged),
    nexus.onDidChangeSession(sessionChanged),
    nexus.onDidChangeAgent(agentChanged),
    focus.onDidChange(focusChanged),
  ];

  return {
    nexus,
    get place() {
      return placeOf(focus);
    },
    get compaction() {
      return compaction?.key === shownPlace ? compaction : undefined;
    },
    get: (part) => parts[part],
    refresh() {
      for (const part of every) part.renew();
    },
    look(view, visible) {
      if (visible) looking.add(view);
      else looking.delete(view);
      look();
    },
    dispose() {
      for (const part of every) part.dispose();
      for (const one of listening) one.dispose();
    },
  };
}

function makeParts(nexus: Nexus, focus: Focus, tell: (part: Part) => void): { [P in Part]: Asked<Parts[P]> } {
  function part<P extends Part>(name: P, ask: (place: Place, request: Request) => Promise<Parts[P]>) {
    const run = async (signal: AbortSignal) => {
      const place = placeOf(focus);
      if (!place) throw new Error("No folder is open.");
      return withToken(signal, (token) => ask(place, (method, params) => nexus.request(method, params, token)));
    };
    return asked<Parts[P]>(run, () => tell(name));
  }
  return {
    usage: part("usage", async (place, request) => ({
      place,
      usage: await request("nexus/context/usage", scope(place)),
    })),
    layers: part("layers", (place, request) => request("nexus/context/layers", inFolder(place))),
    preview: part("preview", (place, request) => request("nexus/context/preview", inFolder(place))),
    config: part("config", (place, request) => request("nexus/config/effective", inFolder(place))),
    sessions: part("sessions", async (place, request) => (await request("nexus/session/list", folder(place))).sessions),
    agents: part("agents", async (place, request) => (await request("nexus/agent/list", folder(place))).agents),
  };
}

type Request = <M extends keyof Requests>(method: M, params: Requests[M]["params"]) => Promise<Requests[M]["result"]>;

function folder(place: Place): InFolder {
  return { workspaceFolder: place.folder.uri };
}

function inFolder(place: Place): InFolder & { agent?: string } {
  return { ...folder(place), ...(place.agent === undefined ? {} : { agent: place.agent }) };
}

/** An agent has a conversation of its own: the daemon knows which. */
function scope(place: Place): InFolder & { agent?: string; session?: string } {
  return place.agent === undefined ? { ...folder(place), session: place.session } : inFolder(place);
}

function placeOf(focus: Focus): Place | undefined {
  if (!focus.folder) return undefined;
  const uri = focus.folder.toString();
  return { folder: { uri, name: nameOf(focus.folder) }, session: focus.session, agent: focus.agent };
}

function keyOf(place: Place | undefined): string {
  return place ? JSON.stringify([place.folder.uri, place.session, place.agent ?? null]) : "";
}

async function withToken<T>(signal: AbortSignal, ask: (token: vscode.CancellationToken) => Promise<T>): Promise<T> {
  const source = new vscode.CancellationTokenSource();
  const cancel = () => source.cancel();
  signal.addEventListener("abort", cancel);
  try {
    return await ask(source.token);
  } finally {
    signal.removeEventListener("abort", cancel);
    source.dispose();
  }
}
