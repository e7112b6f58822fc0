"""Shows what the assistants read in a folder, side by side: profiles, readers, servers, changes."""
