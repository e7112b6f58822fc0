"""Seed 000, "Custom Prompt Sources" and "Extensibility"."""

import tempfile
from pathlib import Path

from nexus_context import FilePromptSource, PromptLoader

folder = Path(tempfile.mkdtemp()).resolve()
(folder / "NEXUS.md").write_text("Use tabs.\n")
personal = folder / "personal" / "NEXUS.md"
personal.parent.mkdir()
personal.write_text("Be brief.\n")


class Nothing:
    """A source of one's own: `load` and `path` are the whole protocol."""

    path = None

    def load(self) -> str | None:
        return None


# the first source with a text counts
sources = [Nothing(), FilePromptSource(folder / "missing.md"), FilePromptSource(personal)]
loader = PromptLoader(personal_sources=sources)
result = loader.load(cwd=folder)
print(f"Personal from: {result.personal_path.relative_to(folder)}")
print(f"Project from: {result.project_path.relative_to(folder)}")
print(
    [
        line
        for line in result.content.splitlines()
        if line.startswith("# ") or line in ("Be brief.", "Use tabs.")
    ]
)

# It prints:
# Personal from: personal/NEXUS.md
# Project from: NEXUS.md
# ['# Personal Configuration', 'Be brief.', '# Project Configuration', 'Use tabs.', '# Environment']
