"""Shared by several packages: checks, files, downloads, issues, intervals, text, threads."""
