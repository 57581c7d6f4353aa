"""Audio input: files, microphones, and clips cut and augmented."""
