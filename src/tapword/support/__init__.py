"""What several packages share: files, downloads, intervals, text."""
