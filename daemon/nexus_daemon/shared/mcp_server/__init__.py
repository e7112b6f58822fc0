"""Run `nexus mcp` without a terminal: an MCP server for one assistant, which stays small and starts at once.

Reading order: line_reader (bounded lines), definitions (the tools), workspace_folders, clients (which
assistant it is), stdio_server (the protocol), call_runner (calls, in the shared daemon), process (from start
to end). `cli/mcp` answers the calls.
"""
