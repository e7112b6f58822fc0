"""What an assistant may do: the decision on a call, and what its rules are about."""
