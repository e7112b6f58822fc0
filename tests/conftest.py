"""What holds for every test: none of them ever sees the user's own state, and none is about speed.

The variables are set before any test is collected, for this process and all that it starts.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

STATE = tempfile.mkdtemp(prefix="nexus-tests-")
atexit.register(shutil.rmtree, STATE, ignore_errors=True)
for name in ("NEXUS_STATE", "XDG_STATE_HOME"):  # the second where a test hands on no variables of its own
    os.environ[name] = STATE

for name in ("default", "ci"):  # a busy machine is no bug; how quick things are, benchmarks say
    settings.register_profile(name, settings.get_profile(name), deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
