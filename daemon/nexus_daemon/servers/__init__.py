"""The MCP servers that run: one process or connection for each approved launch, on a thread of their own.

Reading order: approval_file, server_log, process_guard, stdio_transport, connect, server_thread,
running_server, folder_servers.

Nothing here is imported before somebody asks for a server: the SDK takes half a second.
"""
