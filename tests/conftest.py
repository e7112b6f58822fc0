"""What holds for every test: none of them ever sees the user's own state.

The variables are set before any test is collected, for this process and all that it starts.
"""

import atexit
import os
import shutil
import tempfile

STATE = tempfile.mkdtemp(prefix="nexus-tests-")
atexit.register(shutil.rmtree, STATE, ignore_errors=True)
for name in ("NEXUS_STATE", "XDG_STATE_HOME"):  # the second where a test hands on no variables of its own
    os.environ[name] = STATE
