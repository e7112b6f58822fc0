/** What the window says while there is nothing to measure: no folder, no server, one that is on its way. */
import type { ServerState } from "../nexus";
import { OBSTACLE_TITLES, type Obstacle, REMEDIES } from "../server/remedies";
import type { Action, Notice } from "./window";

const OUTPUT: Action = { id: "output", label: "Show Output" };
const HELP: Action = { id: "help", label: "Get Started" };

/** None while the server answers and a folder is open. `elsewhere`: there are folders, and none is on the disk. */
export function noticeOf(
  state: ServerState,
  detail: string,
  folders: "here" | "elsewhere" | "none",
  obstacle?: Obstacle,
): Notice | undefined {
  if (folders !== "here") {
    const actions: Action[] = [{ id: "openFolder", label: "Open Folder" }, HELP];
    return folders === "none"
      ? notice("No folder is open", "Open a folder to see what its assistant reads.", actions)
      : notice("No folder on the disk is open", "Nexus reads files from the disk, and this window's are not.", actions);
  }
  switch (state) {
    case "ready":
      return undefined;
    case "finding":
    case "starting":
      return busy("Starting Nexus", detail, [OUTPUT]);
    case "installing":
      return busy("Installing Nexus", detail || "This is done once; it may take a minute.", [OUTPUT]);
    case "stopped":
      return obstacle
        ? obstacleNotice(obstacle, detail)
        : notice("Nexus is not running", detail, [{ id: "start", label: "Start" }, HELP]);
    case "failed":
      return { ...obstacleNotice(obstacle ?? UNKNOWN, detail), tone: "error" };
  }
}

const UNKNOWN: Obstacle = { kind: "start-failed", remedies: ["restart", "output"] };

/** What stands in the way, with a button for each way out. */
function obstacleNotice({ kind, remedies }: Obstacle, detail: string): Notice {
  const actions = remedies.map((id): Action => ({ id, label: REMEDIES[id].title }));
  const output = remedies.includes("output") || kind === "not-trusted" ? [] : [OUTPUT];
  return notice(OBSTACLE_TITLES[kind].title, detail, [...actions, ...output, HELP]);
}

/** A folder whose figures could not be got at all. */
export function troubleNotice(text: string): Notice {
  const actions: Action[] = [{ id: "retry", label: "Try Again" }, OUTPUT];
  return { ...notice("The context could not be read", text, actions), tone: "error" };
}

/** Until the first figures are there. */
export const READING: Notice = busy("Reading the context", "", []);

function notice(title: string, text: string, actions: readonly Action[]): Notice {
  return { kind: "notice", title, text, busy: false, tone: "info", actions };
}

function busy(title: string, text: string, actions: readonly Action[]): Notice {
  return { ...notice(title, text, actions), busy: true };
}
