"""HTML-safe text, formatted numbers, and SVG axes."""

import html
import json
from dataclasses import dataclass

import numpy as np

#: Smaller numbers are rounding errors, such as the calibration error of the class shares.
ROUNDING = 1e-14
#: Number of characters of a label that are shown, and that its tooltip has if it is longer.
MOST_SHOWN, MOST_KEPT = 40, 300
#: Tick multiples of powers of ten on short logarithmic axes.
MANY = (1, 1.5, 2, 3, 4, 5, 7)
_CONTROL_PICTURES = {code: 0x2400 + code for code in range(32)} | {127: 0x2421}
#: Characters that reverse the direction of text, so that it reads as something else.
_BIDI_CONTROLS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)


def clean(value) -> str:
    """Text without control characters, lone surrogates and characters that reverse its direction.

    >>> clean("a\\tb\\x00")
    'a␉b␀'
    """
    return str(value).translate(_CONTROL_PICTURES | _BIDI_CONTROLS).encode("utf-8", "replace").decode("utf-8")


def escaped(value) -> str:
    """Text escaped for HTML content and attributes.

    >>> escaped('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(clean(value), quote=True)


def shortened(value, most: int = MOST_SHOWN) -> str:
    """The text, truncated if it is too long.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    text = clean(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def label(value, most: int = MOST_SHOWN) -> str:
    """HTML of a name from the data, isolated so that right-to-left names do not affect their surroundings.

    >>> label("<i>")
    '<bdi>&lt;i&gt;</bdi>'
    """
    short = shortened(value, most)
    whole = "" if short == clean(value) else f' title="{escaped(clean(value)[:MOST_KEPT])}"'
    return f"<bdi{whole}>{escaped(short)}</bdi>"


def as_json(value) -> str:
    """JSON that cannot close the script element around it.

    >>> as_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def count(value: int) -> str:
    return f"{value:,}"


def share(value: float) -> str:
    """A percentage that keeps two digits of small values, and is 0 or 100 only if the value is.

    >>> share(0.0384), share(0.00115), share(0.9997), share(0.0), share(float("nan"))
    ('3.8 %', '0.11 %', '99.97 %', '0 %', '–')
    """
    if np.isnan(value):
        return "–"
    percent = 100.0 * value
    near = min(percent, 100.0 - percent)  # the distance from the nearer end
    if near <= 0.0:
        return f"{percent:.0f} %"
    digits = 1 if near >= 1.0 else (percent < 50.0) - int(np.floor(np.log10(near)))
    return f"{percent:.{min(digits, 5)}f} %"


def number(value: float, digits: int = 3) -> str:
    """A number with so many decimals, or more to keep two significant digits.

    >>> number(0.1134), number(0.00789), number(-1e-9), number(7e-17), number(float("nan"))
    ('0.113', '0.0079', '−1·10⁻⁹', '0', '–')
    """
    if np.isnan(value):
        return "–"
    if abs(value) < ROUNDING:
        return "0"
    exponent = int(np.floor(np.log10(abs(value))))
    if exponent < -5:
        text = f"{value / 10.0**exponent:.2g}·{power(exponent)}"
    else:
        text = f"{value:.{max(digits, 1 - exponent)}f}"
    return text.replace("-", "−")


def amount(value: float) -> str:
    """A cost, with cents if it has some.

    >>> amount(20750.0), amount(12.5)
    ('20,750', '12.50')
    """
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def signed(value: float) -> str:
    """A difference with its sign; zero has none.

    >>> signed(0.0079), signed(-0.25), signed(-0.0)
    ('+0.0079', '−0.250', '0')
    """
    return f"+{number(value)}" if value > 0 else number(value)


def span(low: float, high: float, text=number) -> str:
    """The ends of an interval.

    >>> span(0.0079, 0.02), span(0.01, 0.025, share), span(float("nan"), 1.0)
    ('0.0079 to 0.020', '1.0 to 2.5 %', '–')
    """
    if np.isnan(low) or np.isnan(high):
        return "–"
    return f"{text(low).removesuffix(' %')} to {text(high)}"


def power(exponent: int) -> str:
    """A power of ten.

    >>> power(-4), power(0)
    ('10⁻⁴', '1')
    """
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")) if exponent else "1"


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from ``low`` to ``high``, with ticks."""

    low: float
    high: float
    name: str
    ticks: tuple[tuple[float, str], ...] = ()
    is_log: bool = False

    def share(self, values):
        """Positions of values between the ends, from 0 to 1."""
        values, low, high = np.asarray(values, dtype=float), self.low, self.high
        if self.is_log:
            values, low, high = np.log10(values), np.log10(low), np.log10(high)
        return (values - low) / (high - low)


def linear_axis(low: float, high: float, name: str, *, percent: bool = False, about: int = 5) -> Axis:
    """An axis with ticks at round numbers.

    >>> [text for _, text in linear_axis(0.0, 1.0, "coverage", percent=True).ticks]
    ['0', '20', '40', '60', '80', '100']
    """
    high = high if high > low else low + 1.0
    rough = (high - low) / about
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * next(m for m in (1, 2, 2.5, 5, 10) if m * unit >= rough * 0.999)
    values = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step
    return Axis(low, high, name, tuple((v, f"{100 * v if percent else v:.4g}") for v in (values + 0.0).tolist()))


def log_axis(low: float, high: float, name: str, about: int = 6) -> Axis:
    """A logarithmic axis with ticks at powers of ten, or also at multiples of these if they are few.

    >>> [text for _, text in log_axis(1e-7, 1.0, "ridge", about=4).ticks]
    ['10⁻⁷', '10⁻⁵', '10⁻³', '10⁻¹']
    >>> [text for _, text in log_axis(0.4, 6.0, "width").ticks]
    ['0.5', '1', '2', '5']
    """
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    ten = [(10.0**e, power(e)) for e in range(first, last + 1)]
    some = [
        (m * 10.0**e, f"{m * 10.0**e:.3g}")
        for e in range(first, last + 1)
        for m in ((1, 2, 5) if high / low > 6 else MANY)
    ]
    ticks = [tick for tick in (ten if high / low > 3e3 else some) if low * 0.999 <= tick[0] <= high * 1.001]
    kept: list[tuple[float, str]] = []
    for tick in ticks:  # labels need room
        if not kept or np.log(tick[0] / kept[-1][0]) >= np.log(high / low) / about:
            kept.append(tick)
    return Axis(low, high, name, tuple(kept), is_log=True)


@dataclass(frozen=True)
class Frame:
    """A plot with two axes, in SVG units; by default, ``left`` leaves room for the labels of the y axis."""

    x: Axis
    y: Axis
    width: float = 360
    height: float = 270
    left: float = 0
    right: float = 14
    top: float = 12
    bottom: float = 42

    def __post_init__(self):
        if not self.left:
            longest = max((len(text) for _, text in self.y.ticks), default=1)
            object.__setattr__(self, "left", max(46.0, 24.0 + 6.5 * longest))

    def px(self, values):
        return self.left + self.x.share(values) * (self.width - self.left - self.right)

    def py(self, values):
        return self.height - self.bottom - self.y.share(values) * (self.height - self.top - self.bottom)

    def line(self, xs, ys, css: str, more: str = "") -> str:
        points = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(self.px(xs), self.py(ys)))
        return f'<path class="{css}" d="M{points}"{more}/>'

    def band(self, xs, low, high, css: str) -> str:
        return self.line(np.append(xs, xs[::-1]), np.append(low, high[::-1]), css)

    def axes(self) -> str:
        x0, x1, y0, y1 = self.left, self.width - self.right, self.height - self.bottom, self.top
        parts = [f'<path class="axis" d="M{x0} {y1}V{y0}H{x1}"/>']
        for value, text in self.x.ticks:
            x = float(self.px(value))
            parts.append(f'<path class="tick" d="M{x:.1f} {y0}v4"/>')
            parts.append(f'<text x="{x:.1f}" y="{y0 + 17:.1f}" text-anchor="middle">{text}</text>')
        for value, text in self.y.ticks:
            y = float(self.py(value))
            parts.append(f'<path class="grid" d="M{x0} {y:.1f}H{x1}"/>')
            parts.append(f'<text x="{x0 - 6:.1f}" y="{y + 3.5:.1f}" text-anchor="end">{text}</text>')
        middle = (x0 + x1) / 2
        parts.append(
            f'<text class="name" x="{middle:.1f}" y="{self.height - 6:.1f}" text-anchor="middle">{self.x.name}'
        )
        at = (y0 + y1) / 2
        parts.append(f'</text><text class="name" transform="translate(11 {at:.1f}) rotate(-90)" text-anchor="middle">')
        return "".join([*parts, self.y.name, "</text>"])

    def grid(self) -> str:
        """Vertical lines at the ticks of the x axis, for rows without a y axis."""
        base = self.height - self.bottom
        ticks = [
            f'<path class="grid" d="M{x:.1f} {self.top}V{base}"/>'
            f'<text x="{x:.1f}" y="{base + 15}" text-anchor="middle">{text}</text>'
            for x, text in ((float(self.px(value)), text) for value, text in self.x.ticks)
        ]
        return "".join(ticks)

    def svg(self, identity: str, title: str, about: str, *parts: str, more: str = "") -> str:
        return svg(identity, self.width, self.height, title, about, self.axes(), *parts, more=more)


def svg(identity: str, width: float, height: float, title: str, about: str, *parts: str, more: str = "") -> str:
    """An SVG element with a title and a description for screen readers."""
    return (
        f'<svg id="{identity}" class="drawing" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{identity}-t {identity}-d"{more}><title id="{identity}-t">{escaped(title)}</title>'
        f'<desc id="{identity}-d">{escaped(about)}</desc>{"".join(parts)}</svg>'
    )
