"""Sound in: files, microphones, clips cut and copied."""
