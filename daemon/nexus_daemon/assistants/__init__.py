"""Other assistants: what their hooks ask, and how their settings are written."""
