/** Why there is no server to start, and what can be done about it. */

export interface Remedy {
  readonly title: string;
  readonly command: string;
  readonly args?: readonly unknown[];
}

/** The server cannot be found or installed. The message says what is wrong and what to do. */
export class SetupError extends Error {
  constructor(
    message: string,
    readonly remedies: readonly Remedy[] = [],
    /** How it is, not a failure: it is shown where the user looks for Nexus, and nowhere else. */
    readonly quiet = false,
  ) {
    super(message);
    this.name = "SetupError";
  }
}

export const settingRemedy = (key: string): Remedy => ({
  title: "Open Setting",
  command: "workbench.action.openSettings",
  args: [key],
});
