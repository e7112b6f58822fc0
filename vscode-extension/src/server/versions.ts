/** Versions: three numbers, compared in order. */

export type Version = readonly [number, number, number];

/** The oldest server that this extension can talk to. */
export const NEEDED_SERVER: Version = [0, 1, 0];
/** The oldest Python that the server runs on. */
export const NEEDED_PYTHON: Version = [3, 11, 0];

/** The first version that a text says. */
export function versionIn(text: string): Version | undefined {
  const found = /(?<![\w.])(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?/.exec(text);
  return found ? [Number(found[1]), Number(found[2]), Number(found[3] ?? 0)] : undefined;
}

/** What `nexus --version` says: `nexus 0.1.0`. Another program of that name says something else. */
export function serverVersion(text: string): Version | undefined {
  return /^nexus \d/.test(text.trim()) ? versionIn(text) : undefined;
}

export function atLeast(version: Version, needed: Version): boolean {
  for (let i = 0; i < 3; i++) {
    const [a, b] = [version[i] ?? 0, needed[i] ?? 0];
    if (a !== b) return a > b;
  }
  return true;
}

export function shown(version: Version): string {
  return version.join(".");
}
