"""How much the studio accepts from its pages, how long it waits, and what it remembers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerLimits:
    """Bounds that keep a studio small and responsive, whatever its pages do; chosen generously."""

    # Audio of one clip and of a file, which may have several takes; an uploaded model, any other
    # body; time for it to arrive.
    clip_s: float = 10.0
    file_s: float = 60.0
    model_bytes: int = 64 * 1024 * 1024
    json_bytes: int = 4_000
    body_s: float = 30.0
    # Connections at a time: with the token, and without it.
    connections: int = 100
    unauthenticated: int = 100
    # Head of a request: time since the connection or the response before it, and size.
    head_s: float = 10.0
    head_bytes: int = 16_384
    head_lines: int = 100
    # What may wait for a slow reader; its time to read a block, and a refusal.
    unsent_bytes: int = 1 << 20
    send_s: float = 20.0
    close_s: float = 2.0
    # WebSockets at a time; one message of audio, one of text, and the frames of a message.
    sockets: int = 16
    chunk_s: float = 1.0
    text_characters: int = 2_000
    frames: int = 1_000
    # How fast a WebSocket is read: messages per second, audio against real time, and how far it may
    # run ahead. A page sends 12.5 chunks a second.
    messages_per_s: float = 100.0
    speed: float = 8.0
    burst_s: float = 2.0
    # Scores that wait for a slow page before the oldest are dropped, and messages before the page
    # is disconnected.
    scores: int = 25
    messages: int = 200
    # Audio in which a missed word is searched, and on each side of an event, to find its edges.
    recent_s: float = 6.0
    margin_s: float = 0.3
    # Events whose audio is held for a correction, and for how long; a take is held as long.
    events: int = 10
    keep_s: float = 120.0
    # Pages whose changes can be undone, and changes of one page.
    pages: int = 32
    changes: int = 300


LIMITS = ServerLimits()
