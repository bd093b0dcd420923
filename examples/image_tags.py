"""Image tags, from pixels to probabilities
========================================

This example paints images with several textures each, describes their patches (DAISY), counts visual words and fits one
LSPC for all tags. It compares the AUC of every tag with one calibrated SVC per tag, and plots images with the
probabilities of their tags and, for each tag, patches of its most characteristic visual word.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kproba import LSPC, BagOfFeatures, PictureDescriptors

# %%
# Painting images
# ---------------
# Each texture is a function of two coordinates; an image has a patch of every texture that it is tagged with.

SIDE, STEP, RADIUS = 96, 4, 6
#: pixels shown around the centre of a patch
AROUND = 11
RIGHT, WRONG = "#0072B2", "#C8C8C8"


def stripes(u, v, random):
    return np.sin(2 * np.pi * u) > 0


def checks(u, v, random):
    return np.sin(2 * np.pi * u) * np.sin(2 * np.pi * v) > 0


def dots(u, v, random):
    row = np.floor(v / 0.9)
    return np.hypot((u + row / 2) % 1 - 0.5, v % 0.9 - 0.45) < random.uniform(0.2, 0.32)


def rings(u, v, random):
    return np.sin(2 * np.pi * np.hypot(u, v)) > 0


def waves(u, v, random):
    return np.sin(2 * np.pi * (u + 0.3 * np.sin(2 * np.pi * v / 1.6))) > 0


def bricks(u, v, random):
    row = np.floor(v)
    return (v % 1 > 0.22) & ((u / 1.8 + row / 2) % 1 > 0.12)


def spots(u, v, random):
    noise = gaussian_filter(random.normal(size=u.shape), 0.35 / np.hypot(*np.gradient(u)).mean())
    return noise > np.quantile(noise, 0.55)


def writing(u, v, random):
    """Lines of short upright, slanted or horizontal strokes, with gaps between words."""
    row, letter = np.floor(v / 1.3).astype(int), np.floor(u / 0.55).astype(int)
    slant, gap = random.uniform(-0.7, 0.7, (64, 64)), random.random((64, 64)) < 0.2
    x, y = u / 0.55 % 1 - 0.5, v / 1.3 % 1 - 0.5
    tilt, level = slant[row % 64, letter % 64], random.random((64, 64))[row % 64, letter % 64] < 0.4
    stroke = (abs(x - tilt * y) < 0.17) | (level & (abs(y - tilt / 4) < 0.08))
    return stroke & (abs(y) < 0.33) & ~gap[row % 64, letter % 64]


TEXTURES = {paint.__name__: paint for paint in (stripes, checks, dots, rings, waves, bricks, spots, writing)}
TAGS = list(TEXTURES)


def paint_picture(tags: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A colour image with a patch of every texture that it is tagged with, on top of plain patches."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(float)
    picture = random.uniform(0.2, 0.8, 3) + 0.25 * smooth_noise(random, 14)[..., None] * random.uniform(-1, 1, 3)
    own = [TEXTURES[name] for name, is_there in zip(TAGS, tags) if is_there]
    for texture in [plain] * random.integers(1, 4) + [own[i] for i in random.permutation(len(own))]:
        size = random.uniform(16, 30)
        centre, angle = random.uniform(size * 0.7, SIDE - size * 0.7, 2), random.normal(scale=0.3)
        u, v = rotate(x - centre[0], y - centre[1], angle)
        inside = np.hypot(u, v * random.uniform(0.75, 1.3)) < size
        period = random.uniform(7, 13)
        ink = gaussian_filter(texture(u / period, v / period, random).astype(float), 0.6)[..., None]
        dark, light = two_colours(random)
        edge = gaussian_filter(inside.astype(float), 0.8)[..., None]
        picture = (1 - edge) * picture + edge * (dark * ink + light * (1 - ink))
    shade = 1 + 0.25 * smooth_noise(random, 20)[..., None]
    return (255 * np.clip(picture * shade + random.normal(scale=0.04, size=picture.shape), 0, 1)).astype(np.uint8)


def plain(u, v, random):
    return np.zeros_like(u)


def rotate(x, y, angle):
    return x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)


def smooth_noise(random, scale):
    noise = gaussian_filter(random.normal(size=(SIDE, SIDE)), scale)
    return noise / abs(noise).max()


def two_colours(random):
    """A dark and a light colour of random hue, in random order."""
    dark, light = random.uniform(0.05, 0.45, 3), random.uniform(0.5, 0.95, 3)
    return (dark, light) if random.random() < 0.5 else (light, dark)


def make_pictures(n: int, random: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    tags = (random.random((n, len(TAGS))) < 0.28).astype(int)
    empty = np.flatnonzero(tags.sum(axis=1) == 0)
    tags[empty, random.integers(len(TAGS), size=len(empty))] = 1
    return [paint_picture(row, random) for row in tags], tags


# %%
# Evaluation
# ----------
# One fit for all tags, and the AUC of each tag on new images.


def measure(model, X, tags, X_new, tags_new) -> dict:
    start = perf_counter()
    model.fit(X, tags)
    seconds = perf_counter() - start
    proba = np.asarray(model.predict_proba(X_new))
    return {
        "seconds": seconds,
        "AUC": roc_auc_score(tags_new, proba, average=None),
        "log-loss": np.mean([log_loss(t, p, labels=[0, 1]) for t, p in zip(tags_new.T, proba.T)]),
        "proba": proba,
    }


def print_table(results: dict) -> None:
    print(f"\n{'AUC on new images':28s}" + "".join(f"{name:>16s}" for name in results))
    for number, tag in enumerate(TAGS):
        print(f"{tag:28s}" + "".join(f"{result['AUC'][number]:16.3f}" for result in results.values()))
    print(f"{'mean':28s}" + "".join(f"{result['AUC'].mean():16.3f}" for result in results.values()))
    print(f"{'log-loss per tag':28s}" + "".join(f"{result['log-loss']:16.3f}" for result in results.values()))
    print(f"{'seconds to fit':28s}" + "".join(f"{result['seconds']:16.2f}" for result in results.values()))


# %%
# Plots
# -----
# A tag is represented by the patches that are nearest to the visual word that correlates most with it.


def typical_patches(pictures, descriptors, bag, X, tags, count: int) -> list[list[np.ndarray]]:
    """For every tag, the patches nearest to the word that correlates most with it, each from another image."""
    nodes = np.arange(RADIUS, SIDE - RADIUS, STEP)
    standard = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-12)
    words = bag.words_[((tags - tags.mean(axis=0)).T @ standard).argmax(axis=1)]
    found = []
    for number, word in enumerate(words):
        own = np.flatnonzero(tags[:, number])
        distance = [np.square(descriptors[i] - word).sum(axis=1) for i in own]
        best = np.argsort([d.min() for d in distance])[:count]
        places = [(own[b], *divmod(int(distance[b].argmin()), len(nodes))) for b in best]
        found.append([patch(pictures[i], nodes[row], nodes[column]) for i, row, column in places])
    return found


def patch(picture, row, column):
    picture = np.pad(picture, [(AROUND, AROUND), (AROUND, AROUND), (0, 0)], mode="edge")
    return picture[row : row + 2 * AROUND + 1, column : column + 2 * AROUND + 1]


def draw(pictures, tags, proba, patches):
    figure = plt.figure(figsize=(16, 7.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[3, 1])
    left.suptitle("New images and the probabilities of their tags", fontsize=13)
    axes = left.subplots(3, 8, width_ratios=[1.6, 1] * 4)
    for ax, bars, picture, own, p in zip(axes[:, ::2].ravel(), axes[:, 1::2].ravel(), pictures, tags, proba):
        ax.imshow(picture)
        ax.set_axis_off()
        draw_bars(bars, own, p)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (RIGHT, WRONG)]
    left.legend(handles, ["the image has the tag", "it does not"], loc="outside lower center", ncols=2, frameon=False)
    right.suptitle("Patches of the most\ncharacteristic word", fontsize=13)
    for row, tag, found in zip(right.subplots(len(TAGS), len(patches[0])), TAGS, patches):
        for ax, image in zip(row, found):
            ax.imshow(image)
            ax.add_patch(plt.Circle((AROUND, AROUND), RADIUS, fill=False, color="white", linewidth=1.5))
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        row[0].set_ylabel(tag, rotation=0, ha="right", va="center", fontsize=10)
    return figure


def draw_bars(ax, own, p) -> None:
    places = np.arange(len(TAGS))
    ax.barh(places, p, color=[RIGHT if is_there else WRONG for is_there in own], height=0.75)
    ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], yticks=places)
    ax.set_xticklabels(["0", "½", "1"], fontsize=8)
    ax.set_yticklabels(TAGS, fontsize=8)
    for label, is_there in zip(ax.get_yticklabels(), own):
        label.set(fontweight="bold" if is_there else "normal", color="black" if is_there else "0.45")
    ax.axvline(0.5, color="0.5", linewidth=0.7, linestyle=":")
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=0)


# %%
# Running the example
# -------------------
# ``--out`` sets the folder for the figure, ``--show`` opens it in a window instead, and ``--quick`` uses fewer images
# and words.


def main(out: str | None = "out", quick: bool = False) -> None:
    n_train, n_new, n_words = (240, 60, 300) if quick else (400, 200, 500)
    start = perf_counter()
    pictures, tags = make_pictures(n_train + n_new, np.random.default_rng(0))
    print(f"{n_train} training images, {n_new} new images, {len(TAGS)} tags, {tags.sum(axis=1).mean():.1f} per image")
    print(f"painted in {perf_counter() - start:.1f} s")

    start = perf_counter()
    descriptors = PictureDescriptors(step=STEP, radius=RADIUS).fit_transform(pictures)
    print(f"{sum(map(len, descriptors)):,} descriptors in {perf_counter() - start:.1f} s")

    start = perf_counter()
    bag = BagOfFeatures(n_words, random_state=0).fit(descriptors[:n_train])
    X, X_new = bag.transform(descriptors[:n_train]), bag.transform(descriptors[n_train:])
    print(f"{n_words} words and their counts in {perf_counter() - start:.1f} s")

    tags, tags_new = tags[:n_train], tags[n_train:]
    svc = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False)
    models = {"LSPC()": LSPC(random_state=0), "calibrated SVC": OneVsRestClassifier(svc)}
    results = {name: measure(model, X, tags, X_new, tags_new) for name, model in models.items()}
    print_table(results)

    patches = typical_patches(pictures[:n_train], descriptors[:n_train], bag, X, tags, count=4)
    proba = results["LSPC()"]["proba"]
    figure = draw(pictures[n_train:], tags_new, proba, patches)
    if out is None:
        plt.show()
    else:
        path = Path(out) / "image_tags.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)
        print(f"\nImages with their tags: {path.resolve()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", default="out", help="folder for the figure")
    parser.add_argument(
        "--show", dest="out", action="store_const", const=None, help="show the figure in a window instead"
    )
    parser.add_argument("--quick", action="store_true", help="use fewer images and words")
    options = parser.parse_args()
    main(options.out, options.quick)
