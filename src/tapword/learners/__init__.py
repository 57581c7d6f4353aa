"""Vector -> scores."""
