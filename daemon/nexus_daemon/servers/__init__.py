"""Run MCP servers: one process or connection for each approved launch, in a thread of their own.

Reading order: approval_file, server_log, process_guard, stdio_transport, connect, server_thread,
running_server, folder_servers.

Nothing here is imported before a request needs a server: importing the SDK takes half a second.
"""
