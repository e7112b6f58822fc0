"""Assembles one chat turn: from snapshot, conversation and request it makes what is sent to a model, with a
row for every token.
"""
