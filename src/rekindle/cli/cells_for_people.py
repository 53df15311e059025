"""Numbers as people read them in a terminal: times, sizes, rates, shares, and small charts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

_BARS = "▁▂▃▄▅▆▇█"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3600, 60


def size(number: int | None) -> str:
    """Bytes with a unit, as on the page of a job: a megabyte has 10⁶ bytes.

    >>> size(512), size(1500), size(5 * 10**9), size(None)
    ('512 B', '1.5 kB', '5.0 GB', '–')
    """
    if number is None:
        return "–"
    value, unit = float(number), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{number} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def duration(milliseconds: float | None) -> str:
    """A time span.

    >>> duration(30), duration(1500), duration(95_000), duration(7_260_000), duration(200_000_000), duration(None)
    ('30 ms', '1.5 s', '1 min 35 s', '2 h 1 min', '2 d 7 h', '–')
    """
    if milliseconds is None:
        return "–"
    if abs(milliseconds) < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for long, short, names in ((_DAY_S, _HOUR_S, "d h"), (_HOUR_S, _MINUTE_S, "h min"), (_MINUTE_S, 1, "min s")):
        if whole >= long:
            first, second = names.split()
            return f"{whole // long} {first} {whole % long // short} {second}"
    return f"{seconds:.1f} s"


def moment(milliseconds: int) -> str:
    """A time of this machine's time zone; – for none.

    >>> moment(0)
    '–'
    """
    if milliseconds <= 0:
        return "–"
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M:%S")


def rate(per_second: float) -> str:
    """Records per second.

    >>> rate(0), rate(12.34), rate(12_340), rate(5_600_000)
    ('0', '12.3', '12,340', '5,600,000')
    """
    return "0" if per_second == 0 else f"{per_second:,.1f}" if per_second < 100 else f"{per_second:,.0f}"


def share(part: float, width: int = 8) -> str:
    """A share as a bar and in percent; without a width no bar.

    >>> share(0.5), share(0.0), share(0.5, 0)
    ('████     50%', '          0%', '50%')
    """
    if width == 0:
        return f"{part:.0%}"
    filled = round(min(1.0, max(0.0, part)) * width)
    return f"{'█' * filled}{' ' * (width - filled)} {part:>4.0%}"


def sparkline(values: Sequence[float], width: int = 60) -> str:
    """The last values as a line of bars, the highest one full.

    >>> sparkline([0, 1, 2, 4])
    '▁▂▄█'
    """
    shown = list(values)[-width:]
    highest = max(shown, default=0) or 1
    return "".join(
        _BARS[max(0, min(len(_BARS) - 1, int(value / highest * len(_BARS)) - (value > 0)))] for value in shown
    )
