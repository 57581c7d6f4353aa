"""Record `tapword demo` as an animated terminal, docs/pictures/demo.svg.

    python docs/pictures/terminal.py

The script runs the demo and shows its output in steps. Without animation, it shows the end.
"""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tapword.cli import demo

HERE = Path(__file__).parent
COLUMNS = 80
PROMPT = Text("$ tapword demo", "bold")
# Durations of the command line, each word of the chart, each later part, and the end.
TYPED_S, WORD_S, PART_S, END_S = 1.0, 0.4, 3.0, 6.0
SHELL = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
text {{ font: {char_height}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  white-space: pre; }}
{styles}
</style>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{matrix}
</g>
</svg>
"""
PARTS = "@media (prefers-reduced-motion: reduce) { g { animation: none !important; } }"


def main() -> None:
    """Run the demo, split its output into parts, and write each with its time."""
    charts: list[Text] = []
    draw = demo.chart

    def chart(steps: list[demo.Step]) -> Text:
        charts.append(draw(steps))
        return charts[-1]

    demo.chart = chart
    ran = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    ran.is_interactive = False
    demo.show(ran)
    lines = [PROMPT, *Text.from_ansi(ran.export_text(styles=True)).split("\n")]
    while not lines[-1].plain.strip():
        lines.pop()
    top = next(row for row, line in enumerate(lines) if line.plain.startswith(" 100%"))
    bottom = top + len(charts[-1].split("\n"))
    titles = [row for row in range(bottom, len(lines)) if not lines[row].plain.strip()]
    # Each part: its first row, its lines, and the times it appears and disappears.
    now = TYPED_S
    parts = [(0, lines[:1], 0.0, None), (1, lines[1:top], now, None)]
    for picture in charts[:-1]:
        parts.append((top, list(picture.split("\n")), now, now + WORD_S))
        now += WORD_S
    parts.append((top, lines[top:bottom], now, None))
    for start, end in zip([bottom, *titles], [*titles, len(lines)], strict=True):
        parts.append((start, lines[start:end], now, None))
        now += PART_S
    target = HERE / "demo.svg"
    target.write_text(picture_of(parts, len(lines), now + END_S - PART_S))
    print(f"{target.name}: {target.stat().st_size:,} bytes")


def picture_of(
    parts: list[tuple[int, list[Text], float, float | None]], height: int, total_s: float
) -> str:
    """Combine parts into one picture that repeats every `total_s` seconds."""
    styles, groups = [PARTS], []
    for number, (row, lines, since_s, until_s) in enumerate(parts):
        name = f"p{number}"
        own, matrix = drawn([Text()] * row + lines, name, "{styles}\0{matrix}").split("\0")
        since, until = (100 * (at or 0) / total_s for at in (since_s, until_s))
        gone = "" if until_s is None else f" {until:.2f}% {{ opacity: 0; }}"
        seen = f"0% {{ opacity: {int(not since_s)}; }} {since:.2f}% {{ opacity: 1; }}{gone}"
        rest = int(until_s is None)
        styles += [
            own,
            f"#{name} {{ opacity: {rest}; animation: {name} {total_s:g}s infinite step-end; }}",
            f"@keyframes {name} {{ {seen} 100% {{ opacity: {rest}; }} }}",
        ]
        groups.append(f'<g id="{name}">\n{matrix}\n</g>')
    shell = drawn([Text()] * height, "shell", SHELL)
    head, _, tail = shell.partition("</style>")
    body, _, end = tail.rpartition("</g>")
    inside = "\n".join(styles), "\n".join(groups)
    return f"{head}{inside[0]}\n</style>{body}{inside[1]}\n</g>{end}"


def drawn(lines: list[Text], name: str, form: str) -> str:
    """Draw lines as rich does, in our template, without clipping and empty elements."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for line in lines:
        console.print(line, soft_wrap=True)
    svg = console.export_svg(title="", theme=MONOKAI, code_format=form, unique_id=name)
    return re.sub(r' clip-path="[^"]*"|<text[^>]*>\s*</text>', "", svg.replace("&#160;", " "))


if __name__ == "__main__":
    main()
