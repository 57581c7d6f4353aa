"""Files, downloads and text: what every other package may use."""
