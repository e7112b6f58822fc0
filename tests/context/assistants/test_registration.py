"""The registration of programs: what each room has for those that ask."""

import pytest

from nexus_context.assistants.programs import PROGRAMS, WITH_SESSIONS, WITH_SETUP
from nexus_context.assistants.reading.profile_types import InstructionReader, ServerReader
from nexus_context.assistants.sessions.program import ProgramSessions
from nexus_context.assistants.setup.setup_types import ProgramSetup
from nexus_context.assistants.transcripts.conversation import FormatReader


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_room_has_what_its_program_reads(name: str) -> None:
    program = PROGRAMS[name]
    assert isinstance(program.instructions, InstructionReader)
    assert isinstance(program.servers, ServerReader)
    assert (program.instructions.assistant.name, program.instructions.assistant.title) == (
        name,
        program.title,
    )


@pytest.mark.parametrize("name", WITH_SESSIONS)
def test_a_room_has_the_sessions_of_its_program(name: str) -> None:
    sessions = WITH_SESSIONS[name].sessions
    assert isinstance(sessions, ProgramSessions)
    assert isinstance(WITH_SESSIONS[name].format_reader, FormatReader)
    if not sessions.shares_file:
        assert sessions.record_format().reader is WITH_SESSIONS[name].format_reader


@pytest.mark.parametrize("name", WITH_SETUP)
def test_a_room_has_the_setup_of_its_program(name: str) -> None:
    assert isinstance(WITH_SETUP[name].setup, ProgramSetup)
