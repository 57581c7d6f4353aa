"""Records of an evaluation -> console table, JSON, CSV, LaTeX, and an HTML page that stands alone.

All take the dictionary that `tapword.evaluate` returns; any number in it may be missing.
"""

from tapword.report.writers import table, write_csv, write_html, write_json, write_latex

__all__ = ["table", "write_csv", "write_html", "write_json", "write_latex"]
