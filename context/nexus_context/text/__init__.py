"""Works with texts: lines, what is visible, what is secret, JSON with the place of every value."""
