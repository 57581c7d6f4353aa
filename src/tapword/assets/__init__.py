"""What is shipped: statistics that whiten vectors, and the demo's clips."""

from pathlib import Path

CLIPS = Path(__file__).parent / "clips"
