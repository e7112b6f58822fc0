"""Reads the disk safely and within limits.

The library's other packages read the disk only through this one.
"""
