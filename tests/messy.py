"""Tables as people have them: each a trouble of its own, and a class that follows from what the mess hides.

Every function gives a frame of strings, as they stand in a CSV file, with the class in its last column. ``late`` rows
are those that come after the model: with categories, gaps and junk that the first ones did not have.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

#: What people write where there is nothing.
NOTHING = ("", "NA", "?", "n/a", "  ")


def with_gaps(rng, values, share=0.08) -> np.ndarray:
    """The values as text, some of them missing in one of the many ways."""
    text = np.asarray(values).astype(object)
    gaps = rng.random(len(text)) < share
    text[gaps] = rng.choice(NOTHING, gaps.sum())
    return text


def patients(n: int, seed: int, late=False) -> pd.DataFrame:
    """Gaps of all kinds in numbers and categories, yes/no, a constant, an empty column; the classes are integers."""
    rng = np.random.default_rng(seed)
    age, pulse = rng.integers(18, 90, n), rng.normal(75, 12, n).round(1)
    smoker, ward = rng.choice(["yes", "no"], n), rng.choice(["north", "south", "east"], n)
    risk = 0.05 * (age - 50) + 1.5 * (smoker == "yes") + (ward == "east") + rng.normal(0, 0.5, n)
    if late:
        ward = np.where(rng.random(n) < 0.1, "west wing", ward)
        pulse = np.where(rng.random(n) < 0.05, "not measured", pulse.astype(str))
    return pd.DataFrame(
        {
            "age": with_gaps(rng, age),
            "pulse": with_gaps(rng, pulse),
            "smoker": with_gaps(rng, smoker),
            "insured": rng.choice(["True", "False"], n) if late else with_gaps(rng, rng.choice(["True", "False"], n)),
            "ward": with_gaps(rng, ward),
            "hospital": "St Mary",
            "fax": "",
            "grade": np.digitize(risk, [0.0, 1.5]) + 1,
        }
    )


def visits(n: int, seed: int, late=False) -> pd.DataFrame:
    """Dates in four ways of writing, with gaps; labels of several words in several scripts."""
    rng = np.random.default_rng(seed)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700 * 24 * 60, n), unit="min")
    booked = start - pd.to_timedelta(rng.integers(1, 60, n), unit="D")
    busy = 0.8 * (np.abs(start.hour - 13) < 4) + 0.4 * (start.month > 6) + rng.normal(0, 0.15, n)
    moments = start.tz_localize("UTC").tz_convert("Europe/Zurich")
    return pd.DataFrame(
        {
            "start": with_gaps(rng, start.strftime("%Y-%m-%d %H:%M:%S"), 0.03),
            "day": with_gaps(rng, start.strftime("%d/%m/%Y")),
            "moment": with_gaps(rng, moments.strftime("%Y-%m-%dT%H:%M:%S%z"), 0.5 if late else 0.03),
            "booked": with_gaps(rng, booked.strftime("%m-%d-%Y")),
            "how it went": np.array(["très calme", "ganz schön voll", "満員 — no seats"])[
                np.digitize(busy, [0.4, 0.9])
            ],
        }
    )


def letters(n: int, seed: int, late=False) -> pd.DataFrame:
    """Free text, an id in every row, and names of columns with spaces, dots, brackets and accents."""
    rng = np.random.default_rng(seed)
    topics = {
        "billing": ["invoice", "charged twice", "refund", "payment", "credit card"],
        "delivery": ["parcel", "courier", "late", "tracking number", "address"],
        "praise": ["thank you", "wonderful", "friendly staff", "will come again"],
    }
    filler = ["hello", "please help", "I wrote before", "order", "yesterday", "regards", "my account", "überhaupt, hm"]
    label = rng.choice(list(topics), n, p=[0.5, 0.3, 0.2])
    text = [" ".join(rng.permutation([*rng.choice(topics[each], 2), *rng.choice(filler, 4)])) for each in label]
    if late:
        text = [f"{each}, zut alors!" for each in text]
    return pd.DataFrame(
        {
            "ticket no.": [f"T-{seed}-{i:06d}" for i in range(n)],
            "e.mail [customer]": [f"user{i}@example{i % 90}.org" for i in rng.integers(0, 10**6, n)],
            "Größe, kB": with_gaps(rng, rng.lognormal(2, 1, n).round(2)),
            "the letter": with_gaps(rng, text, 0.04),
            "topic": label,
        }
    )


def machines(n: int, seed: int, late=False) -> pd.DataFrame:
    """A class of two rows, a category with a long tail, codes that look like numbers until one does not."""
    rng = np.random.default_rng(seed)
    kind = np.minimum(rng.geometric(0.25, n), 14)
    code = rng.choice([100, 200, 300], n).astype(str).astype(object)
    code[rng.random(n) < 0.1] = "20X"
    heat, load = rng.normal(60, 15, n), rng.random(n)
    state = np.where(heat + 25 * load + 12 * (code == "20X") + rng.normal(0, 5, n) > 80, "worn", "fine").astype(object)
    if late:
        code = np.where(code == "20X", "200", code)  # now the column is all numbers
        kind = kind + 5 * (rng.random(n) < 0.2)
    else:
        state[:2] = "broken"
        heat[:2] = 160
    return pd.DataFrame(
        {
            "kind": [f"model {each}" for each in kind],
            "code": code,
            "heat": heat.round(1),
            "load": with_gaps(rng, load.round(3), 0.3 if late else 0.0),
            "checked": rng.choice(["Y", "N"], n),
            "state": state,
        }
    )


def sales(n: int, seed: int, late=False) -> pd.DataFrame:
    """Numbers with thousands separators, decimal commas, percents and currencies."""
    rng = np.random.default_rng(seed)
    turnover, rate = rng.lognormal(8, 1, n), rng.normal(5, 2, n)
    margin, price = rng.normal(20, 8, n), rng.lognormal(7, 1, n)
    score = np.log(turnover) - 8 + 0.4 * (rate - 5) + 0.1 * (margin - 20) + np.log(price) - 7 + rng.normal(0, 0.5, n)
    european = [f"{each:,.2f}".translate(str.maketrans(",.", ".,")) for each in price]
    return pd.DataFrame(
        {
            "turnover": with_gaps(rng, [f"{each:,.2f}" for each in turnover]),
            "rate": with_gaps(rng, [f"{each:.2f}".replace(".", ",") for each in rate]),
            "margin": with_gaps(rng, [f"{each:.1f} %" for each in margin], 0.5 if late else 0.05),
            "price": with_gaps(rng, [f"€{each}" for each in european]),
            "good": np.where(score > 0, "yes", "no"),
        }
    )


#: Name -> table.
TABLES = {each.__name__: each for each in (patients, visits, letters, machines, sales)}
