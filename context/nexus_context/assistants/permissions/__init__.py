"""Decides what an assistant does with a call, and says what its permission rules are about."""
