"""What a program around the service does with a client's stream, besides answering it."""

from collections.abc import Sequence

from tapword.serve.wyoming.audio import ConvertedChunk
from tapword.serve.wyoming.stream import Match


class Watch:
    """Watch one client; this one does nothing.

    Attributes
    ----------
    listed
        Whether words and near misses are noted, with their clips.
    """

    listed = False

    def __init__(self, address: str):
        self.address = address

    def audio(self, chunks: Sequence[ConvertedChunk]) -> None:
        """Take chunks that are searched next."""

    def search(self, chunks: Sequence[ConvertedChunk]) -> None:
        """Take the same chunks on a thread, where there is time to search them, too."""

    def stopped(self) -> None:
        """Note that the stream ended."""

    def closed(self) -> None:
        """Note that the client disconnected."""

    def holds_back(self, match: Match) -> bool:
        """Whether the client is not told of a word."""
        return False

    def note(self, match: Match, latency_s: float | None) -> None:
        """Note a word that was answered, on a thread; `latency_s` after its end had arrived."""
