"""One daemon for all windows and commands of a user.

The client's side (`identity`, `hello`, `client`, `tracker`, `forwarder`) imports little, and of the standard
library alone: an editor waits for it.
"""
