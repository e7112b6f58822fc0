"""The mark of tests that use the installed embedding model, which some platforms do not have."""

import importlib.util

import pytest

IS_INSTALLED = importlib.util.find_spec("wordllama") is not None

needs_model = pytest.mark.skipif(not IS_INSTALLED, reason="wordllama is not built for this platform")
