"""Answer the hooks of other assistants, and write their settings."""
