"""The paper's tables and figure, run here, beside the figures it gives."""

from tapword.research.paper.bench import Settings
from tapword.research.paper.names import split_specs
from tapword.research.paper.page import WRITERS, console_tables, page
from tapword.research.paper.run import ALL, TABLES, Outcome, check, reproduce

__all__ = [
    "ALL",
    "TABLES",
    "WRITERS",
    "Outcome",
    "Settings",
    "check",
    "console_tables",
    "page",
    "reproduce",
    "split_specs",
]
