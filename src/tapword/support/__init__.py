"""What several packages share: files, downloads, issues, intervals, text."""
