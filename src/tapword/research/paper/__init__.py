"""The paper's tables and figure, reproduced and compared with its figures."""

from tapword.research.paper.names import split_specs
from tapword.research.paper.page import WRITERS, console_tables, page
from tapword.research.paper.reproduce import ALL, TABLES, Reproduction, check, reproduce
from tapword.research.paper.results import ReproduceOptions

__all__ = ["ALL", "TABLES", "WRITERS", "ReproduceOptions", "Reproduction", "check"]
__all__ += ["console_tables", "page", "reproduce", "split_specs"]
