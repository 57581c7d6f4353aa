"""Chunks of sound in, events out."""
