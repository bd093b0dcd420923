"""Spoken digits with the hidden Markov kernel
===========================================

This example synthesises spoken words from resonances that glide from sound to sound, or reads the cepstra of the Free
Spoken Digit Dataset (``fsdd_mfcc.npz``) from a data folder. Words differ in length and speed, so they do not form a
table. Each word gets a small hidden Markov model, and the distance between two words says how unlikely each is under
the other's model. The last speaker is not in the training data; subtracting the mean of a word from its frames and
adding their slopes helps with that. The example compares error and log-loss with other methods and plots words with
their class probabilities, and the distances between all words.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.fft import dct, idct
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from kproba import LSPC, HiddenMarkovKernel, IndefiniteKernelWarning, SequenceFeatures, Sequences
from kproba.data import real

# %%
# Synthesising words
# ------------------
# A word is a path through resonances; speakers differ in the length of their vocal tracts.

BANDS, CEPSTRA = 32, 13
RIGHT, OTHER = "#0072B2", "#C8C8C8"
#: Resonances (in bands) and loudness of some speech sounds.
SOUNDS = {
    "a": (12, 17, 1.0), "e": (8, 22, 1.0), "i": (5, 25, 1.0), "o": (9, 14, 1.0), "u": (5, 12, 1.0),
    "n": (4, 19, 0.6), "r": (8, 16, 0.7), "w": (5, 10, 0.7), "s": (26, 30, 0.35), "f": (20, 28, 0.25),
    "t": (22, 29, 0.2), "k": (16, 24, 0.2), "v": (6, 21, 0.4),
}  # fmt: skip
WORDS = ("irou", "wan", "tu", "fri", "for", "faiv", "siks", "sevn", "eit", "nain")


class Spoken(NamedTuple):
    """Words as sequences of cepstra, their digits, and whether they are used for training."""

    words: Sequences
    digits: np.ndarray
    is_train: np.ndarray


def say(word: str, tract: float, random: np.random.Generator) -> np.ndarray:
    """Cepstra of one word: resonances glide from sound to sound, each of which is held for a while."""
    sounds = np.array([SOUNDS[letter] for letter in word]) * [tract, tract, 1.0] + random.normal(size=(1, 3)) * [
        0.6,
        0.6,
        0,
    ]
    held = random.integers(3, 9, size=len(word))
    at = np.repeat(np.arange(len(word)), held)
    glide = np.array([np.interp(np.arange(len(at)), np.cumsum(held) - held / 2, column) for column in sounds.T]).T
    band = np.arange(BANDS)
    peaks = sum(np.exp(-((band - glide[:, [k]]) ** 2) / (2 * (1.5 + k) ** 2)) for k in (0, 1))
    power = glide[:, [2]] * peaks + 0.1 * random.exponential(size=(len(at), BANDS)) + 0.01
    return dct(np.log(power) + random.normal(scale=1.0, size=power.shape), norm="ortho")[:, :CEPSTRA]


def made(per_digit: int, n_speakers: int, random: np.random.Generator) -> Spoken:
    tracts = np.linspace(0.8, 1.1, n_speakers)  # long vocal tracts and short ones; the shortest is the new speaker
    speaker = np.tile(np.arange(n_speakers), per_digit * 10 // n_speakers + 1)[: per_digit * 10]
    digits = random.permutation(np.arange(per_digit * 10) % 10)
    words = [say(WORDS[digit], tracts[who], random) for digit, who in zip(digits, speaker)]
    return Spoken(Sequences.of(words), digits, speaker != n_speakers - 1)


def recorded(folder, most: int) -> Spoken:
    """The Free Spoken Digit Dataset; the last speaker is new, and ``most`` words of the others are for training."""
    data = real.load("fsdd_mfcc", folder)
    words, is_new = (
        Sequences(data.X, data.extra["lengths"]),
        data.extra["speaker"] == np.unique(data.extra["speaker"])[-1],
    )
    order = np.random.default_rng(0).permutation(len(words))
    kept = np.concatenate([order[~is_new[order]][:most], order[is_new[order]][: most // 2]])
    return Spoken(words[kept], data.y[kept], ~is_new[kept])


# %%
# Fitting
# -------
# The kernel compares words of any length; the rest is the usual LSPC.


def standardised(spoken: Spoken) -> Spoken:
    """Scale once by the frames of the training words, so that all later steps share models and distances."""
    known = spoken.words[spoken.is_train].frames
    frames = (spoken.words.frames - known.mean(axis=0)) / known.std(axis=0)
    return spoken._replace(words=spoken.words.with_frames(frames))


def report(name: str, proba: np.ndarray, spoken: Spoken, seconds: float) -> np.ndarray:
    own = spoken.digits[~spoken.is_train]
    error = (proba.argmax(axis=1) != own).mean()
    print(f"{name:44s}{error:10.3f}{log_loss(own, proba, labels=np.arange(10)):10.3f}{seconds:10.2f}")
    return proba


def by_kernel(spoken: Spoken) -> LSPC:
    """Leave-one-out chooses width, ridge and calibration; one model is fitted per word."""
    model = LSPC(kernel=HiddenMarkovKernel(n_states=3), scaling=None, random_state=0)
    with warnings.catch_warnings():  # the kernel matrix is projected to PSD, as expected here
        warnings.simplefilter("ignore", IndefiniteKernelWarning)
        return model.fit(spoken.words[spoken.is_train], spoken.digits[spoken.is_train])


def probabilities(spoken: Spoken) -> np.ndarray:
    return by_kernel(spoken).predict_proba(spoken.words[~spoken.is_train])


def by_svc(spoken: Spoken, kernel: HiddenMarkovKernel) -> np.ndarray:
    """A calibrated SVC on the same kernel matrix."""
    train = spoken.is_train
    K = kernel(spoken.words, spoken.words[train])
    svc = CalibratedClassifierCV(SVC(kernel="precomputed", C=10), ensemble=False)
    return svc.fit(K[train], spoken.digits[train]).predict_proba(K[~train])


def by_means(spoken: Spoken) -> np.ndarray:
    """A model that ignores the order of the frames."""
    X = np.array([np.concatenate([word.mean(axis=0), word.std(axis=0)]) for word in spoken.words])
    model = LSPC(random_state=0).fit(X[spoken.is_train], spoken.digits[spoken.is_train])
    return model.predict_proba(X[~spoken.is_train])


# %%
# Plots
# -----


def draw(raw: Spoken, proba: np.ndarray, distances: np.ndarray):
    """Six words with their probabilities, and the distances between all new words and all training words."""
    figure = plt.figure(figsize=(15, 7.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.35, 1])
    new = np.flatnonzero(~raw.is_train)
    order = np.argsort(-proba.max(axis=1), kind="stable")
    shown = [*order[:: max(1, len(order) // 3)][:3], *order[-3:]]
    axes = left.subplots(3, 4, width_ratios=[1.5, 1] * 2)
    for ax, bars, row in zip(axes[:, ::2].T.ravel(), axes[:, 1::2].T.ravel(), shown):
        bands = idct(raw.words[int(new[row])], n=BANDS, norm="ortho")
        ax.imshow(bands.T, origin="lower", aspect="auto", cmap="magma")
        ax.set(xticks=[], yticks=[], ylabel="pitch")
        ax.set_title(f"“{raw.digits[new[row]]}”, {len(bands)} frames", fontsize=10)
        draw_bars(bars, proba[row], raw.digits[new[row]])
    left.suptitle("Words of a new speaker: confident predictions (left), least confident (right)", fontsize=12)
    draw_distances(right, raw, distances)
    return figure


def draw_bars(ax, p: np.ndarray, own: int) -> None:
    ax.bar(np.arange(10), p, color=[RIGHT if digit == own else OTHER for digit in range(10)])
    ax.set(ylim=(0, 1), yticks=[0, 0.5, 1], xticks=np.arange(10))
    ax.tick_params(length=0, labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def draw_distances(figure, spoken: Spoken, distances: np.ndarray) -> None:
    """Rows and columns are sorted by digit: dark squares are words that resemble each other."""
    known, new = spoken.digits[spoken.is_train], spoken.digits[~spoken.is_train]
    rows, columns = np.argsort(new, kind="stable"), np.argsort(known, kind="stable")
    ax = figure.subplots()
    shown = ax.imshow(np.sqrt(distances[np.ix_(rows, columns)]), cmap="viridis", aspect="auto", interpolation="none")
    for digits, set_ticks in ((known, ax.set_xticks), (new, ax.set_yticks)):
        places = [np.flatnonzero(np.sort(digits) == digit).mean() for digit in range(10)]
        set_ticks(places, [str(digit) for digit in range(10)])
    ax.set(xlabel="training words, by digit", ylabel="words of the new speaker, by digit")
    ax.tick_params(length=0)
    figure.colorbar(shown, ax=ax, shrink=0.6, label="square root of the loss per frame, nats")
    figure.suptitle("How unlikely each word is under the other's model", fontsize=12)


# %%
# Running the example
# -------------------
# ``--out`` sets the folder for the figure, ``--show`` opens it in a window instead, and ``--quick`` uses fewer words.


def main(out: str | None = "out", data_dir: str | None = None, quick: bool = False) -> None:
    folder = data_dir or os.environ.get(real.DATA_VARIABLE)
    has_data = bool(data_dir) or bool(folder and (Path(folder) / "fsdd_mfcc.npz").is_file())
    raw = (
        recorded(folder, 120 if quick else 600) if has_data else made(18 if quick else 60, 6, np.random.default_rng(0))
    )
    spoken = standardised(raw._replace(words=SequenceFeatures().transform(raw.words)))
    lengths = spoken.words.lengths
    print(f"{spoken.is_train.sum()} training words, {(~spoken.is_train).sum()} words of a new speaker, ", end="")
    print(f"{lengths.min()} to {lengths.max()} frames of {raw.words.n_coefficients} cepstra")

    print(f"\n{'on words of the new speaker':44s}{'error':>10s}{'log-loss':>10s}{'seconds':>10s}")
    start = perf_counter()
    model = by_kernel(spoken)
    proba = model.predict_proba(spoken.words[~spoken.is_train])
    report("hidden Markov kernel, LSPC", proba, spoken, perf_counter() - start)
    for name, method in (
        ("the same without SequenceFeatures, LSPC", lambda: probabilities(standardised(raw))),
        ("same kernel matrix, calibrated SVC", lambda: by_svc(spoken, model.kernel_)),
        ("mean and spread of frames, LSPC", lambda: by_means(spoken)),
    ):
        start = perf_counter()
        found = method()
        report(name, found, spoken, perf_counter() - start)

    known = model.loo_proba_[np.arange(spoken.is_train.sum()), spoken.digits[spoken.is_train]]
    loo_loss = -np.log(known).mean()
    print(f"\nLeave-one-out log-loss on the training words, which has no new speaker: {loo_loss:.3f}")
    distances = model.kernel_.pairs(spoken.words[~spoken.is_train], spoken.words[spoken.is_train])
    figure = draw(raw, proba, distances)
    if out is None:
        plt.show()
    else:
        path = Path(out) / "spoken_digits.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"Figure: {path.resolve()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", default="out", help="folder for the figure")
    parser.add_argument(
        "--show", dest="out", action="store_const", const=None, help="show the figure in a window instead"
    )
    parser.add_argument("--data-dir", help="folder with fsdd_mfcc.npz; without it, words are synthesised")
    parser.add_argument("--quick", action="store_true", help="use fewer words")
    options = parser.parse_args()
    main(options.out, options.data_dir, options.quick)
