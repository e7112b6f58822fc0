"""What the real assistants send from a folder, held against the profiles: `python -m tests.assistants`.

provider_stand_in   the providers, on loopback
programs            installs the assistants from npm, runs one turn of each in a folder
case_folders        a fixture string with links, repetitions and modes → a folder
cases               the folders
extraction          a request → the blocks of instructions in it
agreement           a request beside a profile
server_cases        folders with MCP servers, and which of them are started
permission_runs     what Claude Code does with calls under settings
permission_askers   what the others do
setting_docs        what Gemini CLI and opencode say of their settings → `settings.docs.json`
mcp_call            a call of `nexus mcp` by each of them
"""
