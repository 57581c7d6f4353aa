"""Servers: the studio in the browser, and the wake-word service."""
