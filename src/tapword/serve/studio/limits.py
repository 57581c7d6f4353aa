"""How much the studio takes from its pages, and how long it waits and remembers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that keep a studio small and answering, whatever its pages do; chosen generously."""

    # Sound in one request, an uploaded model, any other request; time for it to arrive.
    clip_s: float = 10.0
    model_bytes: int = 64 * 1024 * 1024
    json_bytes: int = 4_000
    body_s: float = 30.0
    # Connections at a time of those who showed the token, and apart from them of strangers.
    connections: int = 100
    strangers: int = 100
    # The head of a request: its time from the connection or the answer before it, and its size.
    head_s: float = 10.0
    head_bytes: int = 16_384
    head_lines: int = 100
    # What may wait for a slow reader; the time it has to take it, and at the end to take the last.
    unsent_bytes: int = 1 << 20
    send_s: float = 20.0
    close_s: float = 2.0
    # Live lines at a time; one message of sound on them, one of text, and parts of either.
    lines: int = 16
    chunk_s: float = 1.0
    text_characters: int = 2_000
    frames: int = 1_000
    # How fast a line is read, in messages and against real time, and how far it may be ahead of
    # that. A page sends 12.5 chunks a second.
    messages_per_s: float = 100.0
    speed: float = 8.0
    burst_s: float = 2.0
    # So many scores wait for a slow page before older ones go, and so many messages before the page
    # is given up.
    scores: int = 25
    messages: int = 200
    # Sound in which a missed word is looked for, and around an event, to find the word's own edges.
    recent_s: float = 6.0
    around_s: float = 0.3
    # Events whose sound is kept for a correction, and for how long; a take is kept as long.
    events: int = 10
    keep_s: float = 120.0
    # Pages whose changes can be undone, and changes of one page.
    pages: int = 32
    changes: int = 300


LIMITS = Limits()
