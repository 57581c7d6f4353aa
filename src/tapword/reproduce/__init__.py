"""The paper's tables and figure, run here, beside the figures it gives."""

from tapword.reproduce.compare import console_tables
from tapword.reproduce.page import page
from tapword.reproduce.run import ALL, TABLES, Settings, check, reproduce

__all__ = ["ALL", "TABLES", "Settings", "check", "console_tables", "page", "reproduce"]
