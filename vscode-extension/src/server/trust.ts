/** Trust of folders that come while the server runs: it trusts only those that it is told of. */

export const FOLDERS_CHANGED = "workspace/didChangeWorkspaceFolders";

interface FoldersChanged {
  readonly event: { readonly added: readonly object[]; readonly removed: readonly object[] };
}

/**
 * A notification's parameters, where they tell of added folders with the window's trust beside each of them: the
 * editor's trust is for the whole window.
 */
export function withTrust<P>(method: string, params: P, trusted: boolean): P {
  if (method !== FOLDERS_CHANGED) return params;
  const { event } = params as FoldersChanged;
  return { ...params, event: { ...event, added: event.added.map((folder) => ({ ...folder, trusted })) } };
}
