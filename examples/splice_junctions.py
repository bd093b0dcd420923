"""Splice junctions: classifying DNA strings
=========================================

Genes consist of exons, separated by introns, which the cell cuts out. This example generates DNA sequences around the
beginning of an intron (a donor, …AG|GTAAGT…), around its end (an acceptor, …CCTTTCAG|G…) and around neither, with
realistic letter frequencies; the sequences with neither also have a GT or an AG in the middle. The spectrum kernel
compares strings by the substrings they share, at the same position or at any. The example prints error and log-loss and
plots which positions distinguish the kinds, and how the probability changes when you change a letter.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from kproba import LSPC, Spectrum

# %%
# Generating DNA sequences
# ------------------------

LETTERS = np.array(list("ACGT"))
KINDS = ("donor", "acceptor", "neither")
COLOURS = ("#0072B2", "#D55E00", "#7F7F7F")
SIDE = 20
#: Frequencies of A, C, G, T from the third letter before a donor junction to the sixth letter after it.
DONOR = [
    (0.33, 0.37, 0.18, 0.12), (0.60, 0.13, 0.13, 0.14), (0.09, 0.03, 0.80, 0.08), (0.0, 0.0, 1.0, 0.0),
    (0.0, 0.0, 0.0, 1.0), (0.53, 0.03, 0.42, 0.02), (0.71, 0.08, 0.12, 0.09), (0.07, 0.05, 0.84, 0.04),
    (0.16, 0.16, 0.21, 0.47),
]  # fmt: skip
#: The same from the fifteenth letter before an acceptor junction, a run of C and T, to the first letter after it.
ACCEPTOR = [
    *[(0.12, 0.31, 0.12, 0.45)] * 11, (0.24, 0.30, 0.20, 0.26), (0.06, 0.65, 0.01, 0.28), (1.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 1.0, 0.0), (0.25, 0.14, 0.50, 0.11),
]  # fmt: skip


def sequence(kind: str, random: np.random.Generator) -> str:
    """40 letters with the junction in the middle."""
    letters = random.choice(LETTERS, 2 * SIDE, p=(0.27, 0.23, 0.23, 0.27))
    if kind == "donor":
        letters[SIDE - 3 : SIDE + 6] = [random.choice(LETTERS, p=p) for p in DONOR]
    elif kind == "acceptor":
        letters[SIDE - 15 : SIDE + 1] = [random.choice(LETTERS, p=p) for p in ACCEPTOR]
    elif random.random() < 0.5:
        letters[SIDE : SIDE + 2] = list("GT")
    else:
        letters[SIDE - 2 : SIDE] = list("AG")
    return "".join(letters)


def make(n: int, random: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """One quarter donors, one quarter acceptors, one half neither."""
    y = random.permutation(np.array([0, 1, 2, 2] * (n // 4)))
    return [sequence(KINDS[label], random) for label in y], y


# %%
# Evaluation
# ----------
# ``fit`` accepts a list of strings.


def measure(name: str, model: LSPC, X, y, X_new, y_new) -> LSPC:
    start = perf_counter()
    proba = model.fit(X, y).predict_proba(X_new)
    error = (proba.argmax(axis=1) != y_new).mean()
    print(f"{name:52s}{error:8.3f}{log_loss(y_new, proba):10.3f}{perf_counter() - start:9.2f}")
    return model


# %%
# Plots
# -----


def one_letter_changed(text: str) -> list[str]:
    """All variants of the text with one letter replaced, position by position."""
    return [text[:place] + letter + text[place + 1 :] for place in range(len(text)) for letter in LETTERS]


def draw(model: LSPC, X_new, y_new):
    """Letter frequencies, and the probability of a donor and of an acceptor after one change."""
    figure, axes = plt.subplots(2, 2, figsize=(15, 6.5), layout="constrained")
    proba = model.predict_proba(X_new)
    for (shares, changes), kind in zip(axes.T, (0, 1)):
        own = np.array([list(text) for text, label in zip(X_new, y_new) if label == kind])
        draw_letters(shares, own)
        shares.set_title(f"Letter frequencies of {KINDS[kind]}s", fontsize=11)
        fairly_confident = np.flatnonzero(y_new == kind)[np.argmin(np.abs(proba[y_new == kind, kind] - 0.8))]
        draw_changes(changes, model, X_new[fairly_confident], kind, figure)
    return figure


def draw_letters(ax, texts: np.ndarray) -> None:
    places, bottom = np.arange(texts.shape[1]) - SIDE, np.zeros(texts.shape[1])
    for letter, colour in zip(LETTERS, ("#009E73", "#0072B2", "#E69F00", "#D55E00")):
        share = (texts == letter).mean(axis=0)
        ax.bar(places, share, bottom=bottom, width=0.9, color=colour, label=letter)
        bottom += share
    ax.axvline(-0.5, color="black", linewidth=1.5)
    ax.set(xlim=(-SIDE - 0.5, SIDE - 0.5), ylim=(0, 1), yticks=[0, 0.5, 1], xlabel="position relative to the junction")
    ax.legend(ncols=4, loc="lower left", fontsize=8, frameon=True)


def draw_changes(ax, model: LSPC, text: str, kind: int, figure) -> None:
    found = model.predict_proba(one_letter_changed(text))[:, kind].reshape(len(text), 4).T
    shown = ax.imshow(found, aspect="auto", cmap="cividis", vmin=0, vmax=1, extent=(-SIDE - 0.5, SIDE - 0.5, 3.5, -0.5))
    for place, letter in enumerate(text):
        ax.text(place - SIDE, list(LETTERS).index(letter), letter, ha="center", va="center", fontsize=8,
                fontweight="bold", color="white" if found[:, place].max() < 0.6 else "black")  # fmt: skip
    ax.axvline(-0.5, color="black", linewidth=1.5)
    ax.set(yticks=np.arange(4), yticklabels=LETTERS, xlabel="position relative to the junction")
    ax.set_title(f"P({KINDS[kind]}) of one sequence after changing one letter", fontsize=11)
    figure.colorbar(shown, ax=ax, pad=0.01)


# %%
# Running the example
# -------------------
# ``--out`` sets the folder for the figure, ``--show`` opens it in a window instead, and ``--quick`` uses fewer
# sequences.


def main(out: str | None = "out", quick: bool = False) -> None:
    random = np.random.default_rng(0)
    X, y = make(240 if quick else 1200, random)
    X_new, y_new = make(240 if quick else 1200, random)
    print(f"{len(X)} sequences of {2 * SIDE} letters and {len(X_new)} new ones, such as\n")
    for kind, name in enumerate(KINDS):
        text = X[int(np.flatnonzero(y == kind)[0])]
        print(f"    {text[:SIDE]}|{text[SIDE:]}  {name}")

    print(f"\n{'on new sequences':52s}{'error':>8s}{'log-loss':>10s}{'s':>9s}")
    kernels = {
        "Spectrum(length=3): triples at any position": Spectrum(length=3),
        "Spectrum(length=1, positions=True): single letters": Spectrum(length=1, positions=True),
        "Spectrum(length=(1, 3), positions=True)": Spectrum(length=(1, 3), positions=True),
    }
    models = {
        name: measure(name, LSPC(kernel=kernel, random_state=0), X, y, X_new, y_new) for name, kernel in kernels.items()
    }
    best = min(models.values(), key=lambda model: log_loss(y, model.loo_proba_))  # chosen without the new sequences
    print(f"\nLeave-one-out prefers {best.kernel_}.")
    figure = draw(best, X_new, y_new)
    if out is None:
        plt.show()
    else:
        path = Path(out) / "splice_junctions.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"Figure: {path.resolve()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", default="out", help="folder for the figure")
    parser.add_argument(
        "--show", dest="out", action="store_const", const=None, help="show the figure in a window instead"
    )
    parser.add_argument("--quick", action="store_true", help="use fewer sequences")
    options = parser.parse_args()
    main(options.out, options.quick)
