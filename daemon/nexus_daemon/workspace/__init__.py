"""Folders of a workspace: their files as snapshots, kept fresh, and what is wrong in them, published."""
