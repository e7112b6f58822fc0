"""Share one daemon among all windows and commands of a user.

The client's side (`identity`, `hello`, `client`, `tracker`, `forwarder`) imports little, and only from the
standard library, since an editor waits for it.
"""
