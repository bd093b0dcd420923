"""All experiments in turn, then a table of what the papers report beside what was found.

``python -m experiments.run [--data-dir DIR] [--quick]``; the table alone is ``python -m experiments.reproduction``.
"""

from __future__ import annotations

import sys
import time

from experiments import (
    boosting_2013,
    digits_2010,
    images_2011,
    ivm_2001,
    optimum_2013,
    reproduction,
    results,
    sgd_2010,
    similarity_2010,
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
    "similarity_2010": similarity_2010.main,
    "boosting_2013": boosting_2013.main,
    "sound_2011": sound_2011.main,
    "optimum_2013": optimum_2013.main,
    "digits_2010": digits_2010.main,
    "skc_2013": skc_2013.main,
    "images_2011": images_2011.main,
    "size_2010": size_2010.main,
}


def main(argv=None) -> None:
    """Give every experiment the same options."""
    argv = sys.argv[1:] if argv is None else list(argv)
    options = results.parse(argv, __doc__)  # a wrong option is refused before any work is done
    for name, experiment in EXPERIMENTS.items():
        start = time.perf_counter()
        results.say(f"== {name}")
        experiment(argv)
        results.say(f"== {name}: {time.perf_counter() - start:.0f} s")
    print(reproduction.as_text(options.out))


if __name__ == "__main__":
    main()
