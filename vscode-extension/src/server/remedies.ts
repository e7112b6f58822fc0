/** Why there is no server, and what the user can do about it. Commands by their names only: no VS Code here. */

export type RemedyId =
  | "getPython"
  | "pythonSetting"
  | "serverSetting"
  | "manageTrust"
  | "tryAgain"
  | "restart"
  | "output";

export interface Remedy {
  readonly title: string;
  readonly command: string;
  readonly args?: readonly unknown[];
}

export const REMEDIES: Readonly<Record<RemedyId, Remedy>> = {
  getPython: { title: "Get Python", command: "nexus.getPython" },
  pythonSetting: { title: "Choose a Python", command: "workbench.action.openSettings", args: ["nexus.python"] },
  serverSetting: { title: "Open Setting", command: "workbench.action.openSettings", args: ["nexus.server.path"] },
  manageTrust: { title: "Manage Trust", command: "workbench.trust.manage" },
  tryAgain: { title: "Try Again", command: "nexus.restartServer" },
  restart: { title: "Restart", command: "nexus.restartServer" },
  output: { title: "Show Output", command: "nexus.showOutput" },
};

/** What stands in the way; the value of `nexus.obstacle` in `when` clauses. */
export type ObstacleKind =
  | "no-python"
  | "not-trusted"
  | "bad-setting"
  | "no-server"
  | "install-failed"
  | "other-protocol"
  | "start-failed";

export interface Obstacle {
  readonly kind: ObstacleKind;
  /** The best first. */
  readonly remedies: readonly RemedyId[];
}

/** The server cannot be found or installed. The message says what is wrong and what to do. */
export class SetupError extends Error implements Obstacle {
  readonly remedies: readonly RemedyId[];

  constructor(
    readonly kind: ObstacleKind,
    message: string,
    ...remedies: RemedyId[]
  ) {
    super(message);
    this.name = "SetupError";
    this.remedies = remedies;
  }

  /** How it is, not a failure: it is shown where the user looks for Nexus, and nowhere else. */
  get isQuiet(): boolean {
    return this.kind === "not-trusted";
  }
}

/** For the panel, and in a few words for the status bar. */
export const OBSTACLE_TITLES: Readonly<Record<ObstacleKind, { readonly title: string; readonly brief: string }>> = {
  "no-python": { title: "Python 3.11 or later is missing", brief: "no Python" },
  "not-trusted": { title: "This folder is not trusted", brief: "not trusted" },
  "bad-setting": { title: "A setting of Nexus does not fit", brief: "wrong setting" },
  "no-server": { title: "The server of Nexus is missing", brief: "no server" },
  "install-failed": { title: "The server could not be installed", brief: "not installed" },
  "other-protocol": { title: "Nexus and its server do not fit", brief: "update needed" },
  "start-failed": { title: "Nexus could not start", brief: "not started" },
};

/** Where this platform's Python comes from, as python.org says. */
export function pythonPage(platform: NodeJS.Platform): string {
  if (platform === "win32") return "https://www.python.org/downloads/windows/";
  if (platform === "darwin") return "https://www.python.org/downloads/macos/";
  return "https://docs.python.org/3/using/unix.html";
}
