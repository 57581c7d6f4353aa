"""Where clips come from."""
