"""Text -> clips: programs and networks that speak, one file each."""
