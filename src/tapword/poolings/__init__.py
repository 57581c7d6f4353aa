"""Frames -> vector."""
