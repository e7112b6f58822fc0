"""Renders the bodies of requests: a module for each provider, what its servers refuse, and what a model
takes.
"""
