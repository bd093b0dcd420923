"""Classifying sounds with bags of frames
======================================

This example synthesises short sounds of six kinds, or reads the cepstra of ESC-50 (``esc50_mfcc.npz``) from a data
folder. It counts the words of their frames, fits LSPC, compares its error and log-loss with other methods, and plots
sounds with their class probabilities.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.fft import dct, idct
from scipy.signal import stft
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kproba import LSPC, BagOfFeatures
from kproba.data import real

# %%
# Synthesising sounds
# -------------------
# There are six kinds of sounds, with an echo and background noise.

RATE, SECONDS, BANDS, CEPSTRA = 16_000, 1.5, 40, 20
RIGHT, OTHER = "#0072B2", "#C8C8C8"


class Sounds(NamedTuple):
    """Frames of every sound, the index of its kind, and whether it is used for training."""

    frames: list[np.ndarray]
    labels: np.ndarray
    kinds: list[str]
    is_train: np.ndarray


def rain(t, random):
    drops = (random.random(len(t)) < 0.003) * random.exponential(3.0, len(t))
    return np.convolve(random.normal(size=len(t)) * 0.25 + drops, np.exp(-np.arange(60) / 8.0), "same")


def bark(t, random):
    sound, pitch = np.zeros_like(t), random.uniform(280, 600)
    for start in np.cumsum(random.uniform(0.15, 0.5, size=random.integers(2, 5))):
        s = np.clip(t - start, 0, None)
        tone = sum(np.sin(2 * np.pi * k * pitch * (s + 0.4 * s * np.exp(-20 * s))) / k for k in range(1, 7))
        sound += (tone + random.normal(size=len(t))) * np.exp(-s / 0.05) * (1 - np.exp(-s / 0.005))
    return sound


def siren(t, random):
    sweep = random.uniform(150, 400) * np.sin(2 * np.pi * random.uniform(0.4, 2.0) * t + random.uniform(0, 6))
    phase = 2 * np.pi * np.cumsum(random.uniform(600, 1100) + sweep) / RATE
    return np.sin(phase) + 0.4 * np.sin(2 * phase) + 0.2 * np.sin(3 * phase)


def clock(t, random):
    since = (t + random.uniform(0, 0.5)) % random.uniform(0.25, 0.5)
    ring = random.uniform(1800, 3500)
    return (np.sin(2 * np.pi * ring * since) + 0.5 * random.normal(size=len(t))) * np.exp(-since / 0.008)


def bell(t, random):
    pitch, since = random.uniform(200, 500), np.clip(t - random.uniform(0, 0.3), 0, None)
    partials = zip((0.5, 1.0, 1.19, 1.5, 2.0, 2.66, 3.01, 4.1), (1.5, 1.2, 0.8, 0.6, 0.5, 0.3, 0.2, 0.15))
    return sum(a * np.sin(2 * np.pi * p * pitch * since) * np.exp(-since * p / 1.2) for p, a in partials)


def bird(t, random):
    sound = np.zeros_like(t)
    for start in random.uniform(0, 1.3, size=random.integers(4, 10)):
        s, length = t - start, random.uniform(0.04, 0.12)
        slide = random.uniform(2500, 4500) + random.uniform(-8000, 8000) * s
        sound += np.where((s > 0) & (s < length), np.sin(np.pi * s / length) * np.sin(2 * np.pi * slide * s), 0.0)
    return sound


KINDS = {make.__name__: make for make in (rain, bark, siren, clock, bell, bird)}


def make_sound(kind: str, random: np.random.Generator) -> np.ndarray:
    """One sound with an echo and background noise, which may be louder than the sound."""
    t = np.arange(int(RATE * SECONDS)) / RATE
    sound = KINDS[kind](t, random)
    late = int(RATE * random.uniform(0.02, 0.12))
    sound = sound + random.uniform(0, 0.5) * np.concatenate([np.zeros(late), sound[:-late]])
    hiss = np.convolve(random.normal(size=len(t)), np.ones(random.integers(1, 12)), "same")
    hum = np.sin(2 * np.pi * random.uniform(80, 2000) * t)
    noise = hiss / hiss.std() + random.uniform(0, 1) * hum
    return sound / sound.std() + random.uniform(0.4, 3.0) * noise


# %%
# Frames of a sound
# -----------------
# A sound is a bag of frames, each described by the shape of its spectrum.


def log_mel(sound: np.ndarray) -> np.ndarray:
    """Logarithm of the power in 40 mel bands, one row per frame of 32 ms."""
    frequency, _, waves = stft(sound, RATE, nperseg=512, noverlap=256)
    mel = 2595 * np.log10(1 + frequency / 700)
    edges = np.linspace(mel[1], mel[-1], BANDS + 2)
    rising = (mel - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - mel) / np.diff(edges)[1:, None]
    filters = np.clip(np.minimum(rising, falling), 0, None)
    return np.log(filters @ np.abs(waves) ** 2 + 1e-8).T


def cepstra(sound: np.ndarray) -> np.ndarray:
    """The first coefficients of a cosine transform of the bands: the shape of the spectrum without its details."""
    return dct(log_mel(sound), norm="ortho")[:, :CEPSTRA].astype(np.float32)


def synthetic(n_train: int, n_new: int, random: np.random.Generator) -> Sounds:
    labels = np.arange(n_train + n_new) % len(KINDS)
    frames = [cepstra(make_sound(list(KINDS)[label], random)) for label in labels]
    return Sounds(frames, labels, list(KINDS), np.arange(len(labels)) < n_train)


def recorded(folder, ten_kinds: bool) -> Sounds:
    """The official split of ESC-50: the fifth fold is for testing. ``ten_kinds`` keeps only the kinds of ESC-10."""
    data = real.load("esc50_mfcc", folder)
    frames = np.split(data.X, np.cumsum(data.extra["lengths"])[:-1])
    kept = np.flatnonzero(data.extra["esc10"]) if ten_kinds else np.arange(len(frames))
    kinds, labels = np.unique(data.extra["category"][kept], return_inverse=True)
    return Sounds([frames[i] for i in kept], labels, kinds.tolist(), data.extra["fold"][kept] != 5)


# %%
# Evaluation
# ----------


def mean_and_spread(frames: list[np.ndarray]) -> np.ndarray:
    return np.array([np.concatenate([item.mean(axis=0), item.std(axis=0)]) for item in frames])


def measure(name: str, model, X: np.ndarray, sounds: Sounds) -> np.ndarray:
    """Fit on the training sounds, print the scores on the new ones, and return their probabilities."""
    start = perf_counter()
    model.fit(X[sounds.is_train], sounds.labels[sounds.is_train])
    seconds = perf_counter() - start
    proba, own = model.predict_proba(X[~sounds.is_train]), sounds.labels[~sounds.is_train]
    error = (proba.argmax(axis=1) != own).mean()
    print(f"{name:44s}{error:10.3f}{log_loss(own, proba):10.3f}{seconds:10.2f}")
    return proba


# %%
# Plots
# -----


def draw(sounds: Sounds, proba: np.ndarray):
    """Spectrograms, smoothed by the cepstra, each with its most probable kinds."""
    new = np.flatnonzero(~sounds.is_train)
    least_confident = np.argsort(proba.max(axis=1), kind="stable")[:4]
    others = np.setdiff1d(np.random.default_rng(1).permutation(len(new))[:12], least_confident)[:8]
    shown = [*others, *least_confident]
    figure, axes = plt.subplots(3, 8, figsize=(16, 7), width_ratios=[1.5, 1] * 4, layout="constrained")
    for ax, bars, row in zip(axes[:, ::2].ravel(), axes[:, 1::2].ravel(), shown):
        bands = idct(sounds.frames[new[row]], n=BANDS, norm="ortho")
        ax.imshow(bands.T, origin="lower", aspect="auto", cmap="magma", vmin=np.quantile(bands, 0.02))
        ax.set(xticks=[], yticks=[])
        ax.set_title(readable(sounds.kinds[sounds.labels[new[row]]]), fontsize=11)
        draw_bars(bars, sounds, proba[row], sounds.labels[new[row]])
    figure.suptitle(
        "Predictions for new sounds: eight at random and, in the last row, the four least confident ones", fontsize=13
    )
    return figure


def draw_bars(ax, sounds: Sounds, p: np.ndarray, own: int) -> None:
    best = np.argsort(-p, kind="stable")[:6]
    places = np.arange(len(best))
    ax.barh(places, p[best], color=[RIGHT if kind == own else OTHER for kind in best], height=0.75)
    ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], yticks=places)
    ax.set_xticklabels(["0", "½", "1"], fontsize=8)
    ax.set_yticklabels([readable(sounds.kinds[kind]) for kind in best], fontsize=8)
    for label, kind in zip(ax.get_yticklabels(), best):
        label.set(fontweight="bold" if kind == own else "normal", color="black" if kind == own else "0.45")
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=0)


def readable(kind: str) -> str:
    return kind.replace("_", " ")


def read_or_make(data_dir, quick: bool) -> Sounds:
    folder = data_dir or os.environ.get(real.DATA_VARIABLE)
    if data_dir or (folder and (Path(folder) / "esc50_mfcc.npz").is_file()):
        return recorded(folder, ten_kinds=quick)
    return synthetic(*((120, 90) if quick else (300, 300)), np.random.default_rng(0))


# %%
# Running the example
# -------------------
# ``--out`` sets the folder for the figure, ``--show`` opens it in a window instead, and ``--quick`` uses fewer sounds
# and words.


def main(out: str | None = "out", data_dir: str | None = None, quick: bool = False) -> None:
    start = perf_counter()
    sounds = read_or_make(data_dir, quick)
    n_train = int(sounds.is_train.sum())
    print(f"{n_train} training sounds, {len(sounds.labels) - n_train} new sounds, {len(sounds.kinds)} kinds", end=", ")
    print(f"{sum(map(len, sounds.frames)):,} frames, read in {perf_counter() - start:.1f} s")

    start = perf_counter()
    train = [frames for frames, is_train in zip(sounds.frames, sounds.is_train) if is_train]
    bag = BagOfFeatures(100 if quick else 500, scaling="standard", random_state=0).fit(train)
    X = bag.transform(sounds.frames)
    print(f"{len(bag.words_)} words and their counts in {perf_counter() - start:.1f} s\n")

    print(f"{'on new sounds':44s}{'error':>10s}{'log-loss':>10s}{'fit, s':>10s}")
    proba = measure("bags, LSPC(scaling=None)", LSPC(scaling=None, random_state=0), X, sounds)
    svc = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False)
    measure("bags, calibrated SVC", svc, X, sounds)
    measure("mean and spread of frames, LSPC()", LSPC(random_state=0), mean_and_spread(sounds.frames), sounds)
    figure = draw(sounds, proba)
    if out is None:
        plt.show()
    else:
        path = Path(out) / "sound_events.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nSounds and their probabilities: {path.resolve()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", default="out", help="folder for the figure")
    parser.add_argument(
        "--show", dest="out", action="store_const", const=None, help="show the figure in a window instead"
    )
    parser.add_argument("--data-dir", help="folder with esc50_mfcc.npz; without it, sounds are synthesised")
    parser.add_argument("--quick", action="store_true", help="use fewer sounds and words")
    options = parser.parse_args()
    main(options.out, options.data_dir, options.quick)
