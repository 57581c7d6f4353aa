"""Audio -> frames."""
