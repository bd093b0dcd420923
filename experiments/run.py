"""All experiments in turn: ``python -m experiments.run [--data-dir DIR] [--quick]``."""

from __future__ import annotations

import sys
import time

from experiments import (
    images_2011,
    ivm_2001,
    results,
    sgd_2010,
    size_2010,
    skc_2013,
    sound_2011,
    textbook_28,
    toy_2010,
    toy_2011,
)

#: In the order of their running time.
EXPERIMENTS = {
    "ivm_2001": ivm_2001.main,
    "textbook_28": textbook_28.main,
    "sgd_2010": sgd_2010.main,
    "toy_2010": toy_2010.main,
    "toy_2011": toy_2011.main,
    "size_2010": size_2010.main,
    "sound_2011": sound_2011.main,
    "images_2011": images_2011.main,
    "skc_2013": skc_2013.main,
}


def main(argv=None) -> None:
    """Give every experiment the same options."""
    argv = sys.argv[1:] if argv is None else list(argv)
    results.parse(argv, __doc__)  # a wrong option is refused before any work is done
    for name, experiment in EXPERIMENTS.items():
        start = time.perf_counter()
        results.say(f"== {name}")
        experiment(argv)
        results.say(f"== {name}: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
