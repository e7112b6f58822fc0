/** The state of an MCP server in words, and what the user can do with it. No VS Code here. */
import type { ServerInfo } from "./protocol";
import { plural } from "./usage/figures";

export type ServerAction = "approve" | "login" | "start" | "stop" | "restart" | "log" | "revoke";

interface State {
  readonly icon: string;
  readonly text: string;
  /** How much it wants the user's attention. */
  readonly tone: "calm" | "warning" | "error";
}

const STATES: Readonly<Record<string, State>> = {
  disabled: { icon: "circle-slash", text: "off in its file", tone: "calm" },
  untrusted: { icon: "workspace-untrusted", text: "the folder is not trusted", tone: "calm" },
  unapproved: { icon: "shield", text: "not approved", tone: "calm" },
  stopped: { icon: "circle-outline", text: "stopped", tone: "calm" },
  starting: { icon: "loading~spin", text: "starting", tone: "calm" },
  ready: { icon: "check", text: "ready", tone: "calm" },
  changed: { icon: "warning", text: "offers something else than you approved", tone: "warning" },
  failed: { icon: "error", text: "failed", tone: "error" },
  "needs-auth": { icon: "key", text: "somebody has to sign in", tone: "warning" },
};

interface ActionFace {
  readonly title: string;
  readonly icon: string;
  fits(server: ServerInfo): boolean;
}

/** In the order in which a menu shows them. */
export const SERVER_ACTIONS: Readonly<Record<ServerAction, ActionFace>> = {
  approve: {
    title: "Approve…",
    icon: "shield",
    fits: ({ state }) => ["unapproved", "changed", "untrusted"].includes(state),
  },
  login: { title: "Sign In…", icon: "key", fits: ({ state }) => state === "needs-auth" },
  start: { title: "Start", icon: "play", fits: ({ state }) => ["stopped", "failed"].includes(state) },
  stop: { title: "Stop", icon: "debug-stop", fits: isRunning },
  restart: { title: "Restart", icon: "debug-restart", fits: isRunning },
  log: { title: "Show Log", icon: "output", fits: ({ log }) => log !== undefined },
  revoke: {
    title: "Revoke Approval…",
    icon: "trash",
    fits: (server) =>
      server.origin !== "global" && (["stopped", "failed", "needs-auth"].includes(server.state) || isRunning(server)),
  },
};

export function actionsOf(server: ServerInfo): ServerAction[] {
  return (Object.keys(SERVER_ACTIONS) as ServerAction[]).filter((action) => SERVER_ACTIONS[action].fits(server));
}

export function stateOf({ state }: Pick<ServerInfo, "state">): State {
  return STATES[state] ?? { icon: "server", text: state, tone: "calm" };
}

/** What the model is told of a server costs this in every request: `ready · 12 tools · ≈ 3,400 tokens`. */
export function stateText(server: ServerInfo): string {
  const parts = [stateOf(server).text];
  if (server.pin !== undefined) parts.push(plural(server.tools?.length ?? 0, "tool"), tokensText(server));
  return parts.join(" · ");
}

export function tokensText({ exact, tokens = 0 }: Pick<ServerInfo, "exact" | "tokens">): string {
  return `${exact === true ? "" : "≈ "}${plural(tokens, "token")}`;
}

function isRunning({ state }: ServerInfo): boolean {
  return state === "ready" || state === "starting" || state === "changed";
}
