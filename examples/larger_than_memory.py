"""
Data larger than memory
=======================

Your rows may be in Parquet files that do not fit in memory. The model only needs small sums over the rows, so the files
are read one chunk at a time, and the result is the same as from an array. Here the data is small enough to check this.
The example needs ``pip install 'kproba[files]'``.
"""

import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.metrics import log_loss

import kproba
from kproba.data.toys import clouds_2013

folder = Path(tempfile.mkdtemp())
toy, new = clouds_2013(90_000, random_state=0), clouds_2013(5_000, random_state=1)
names = [f"x{number}" for number in range(toy.X.shape[1])]


def write(path, X, **more):
    pq.write_table(pa.table(dict(zip(names, X.T)) | more), path)


for number, rows in enumerate(np.array_split(np.arange(len(toy.y)), 6)):
    write(folder / f"part{number}.parquet", toy.X[rows], label=toy.y[rows])
write(folder / "new.parquet", new.X)

# %%
# Fitting from files
# ------------------
# ``open_rows`` only inspects the columns and reads no rows yet. ``chunk_bytes`` limits how much of the inputs is in
# memory at a time.

rows = kproba.open_rows(f"{folder}/part*.parquet", target="label", chunk_bytes=2**20)
print(f"{rows.n_rows:,} rows, {rows.n_features} columns, {len(rows.paths)} files")

start = perf_counter()
from_files = kproba.LSPC(kernel="gaussian", centers=150, random_state=0).fit(rows)
print(f"fitted from files in {perf_counter() - start:.1f} s")

start = perf_counter()
from_array = kproba.LSPC(kernel="gaussian", centers=150, random_state=0).fit(toy.X, toy.y)
print(f"fitted from an array in {perf_counter() - start:.1f} s")

new_rows = kproba.open_rows(folder / "new.parquet")
proba = from_files.predict_proba(new_rows)
difference = abs(proba - from_array.predict_proba(new.X)).max()
print(f"largest difference between probabilities: {difference:.0e}")

# %%
# Write the probabilities of the new file chunk by chunk. The output file appears when it is complete:

kproba.write_probabilities(from_files, new_rows, folder / "out.parquet")
written = pq.read_table(folder / "out.parquet")
print(written.slice(0, 3).to_pandas())

# %%
# Batches
# -------
# ``partial_fit`` adds a batch to the sums and solves the system again. The first batch chooses the kernel, width and
# centres, so it should have a few thousand rows. You need not keep the batches.

arriving = kproba.LSPC(kernel="gaussian", centers=150, random_state=0)
seen, losses = [], []
order = np.random.default_rng(0).permutation(len(toy.y))
for batch in np.split(order, [2_000, 4_000, 8_000, 16_000, 32_000, 64_000]):
    arriving.partial_fit(toy.X[batch], toy.y[batch], classes=[1, 2])
    seen.append(len(batch) + (seen[-1] if seen else 0))
    losses.append(log_loss(new.y, arriving.predict_proba(new.X)))

whole = log_loss(new.y, proba)
best = log_loss(new.y, new.posterior(new.X))
print(f"log-loss after the last batch {losses[-1]:.4f}, from files {whole:.4f}, of the true posterior {best:.4f}")

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(seen, losses, marker="o", color="#0072B2", label="partial_fit, batch by batch")
ax.axhline(whole, color="#D55E00", linestyle="--", label="fit, all files")
ax.axhline(best, color="0.5", linestyle=":", label="the true posterior")
ax.set(xscale="log", xlabel="rows seen", ylabel="log-loss, new rows", title="150 kernels, rows in batches")
ax.set_xticks(seen, [f"{count:,}" for count in seen], rotation=30)
ax.set_xticks([], minor=True)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# You can interrupt a long fit: ``clf.fit(rows, checkpoint="folder")`` resumes where it stopped.
