/** Why there is no server to start, and what can be done about it. */
import type { Obstacle, ObstacleKind, RemedyId } from "./remedies";

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
