"""Data sets of clips."""
