"""Serve one client: its features, its messages in and out, its life. Entry: `stdio.serve_stdio`."""
