"""Shared by several packages: files, downloads, issues, intervals, text, threads."""
