"""Reading from the disk that is safe and bounded: the only door to it."""
