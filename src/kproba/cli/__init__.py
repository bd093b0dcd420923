"""The command ``kproba``: one command a file."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

from .. import __version__
from ..exceptions import KprobaWarning
from . import compare, demo, evaluate, fit, predict, report

COMMANDS = (demo, fit, predict, evaluate, report, compare)
#: What the exit status says: all went well, something unforeseen, bad input, interrupted.
FINE, UNFORESEEN, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
EPILOG = """\
exit status: 0 fine, 1 something unforeseen, 2 bad input or options, 130 interrupted

examples:
  kproba demo                                        a first look, nothing to prepare
  kproba fit people.csv --target income --model m.kproba
  kproba predict new.csv --model m.kproba --out answers.csv
  kproba evaluate test.csv --model m.kproba
  kproba report test.csv --model m.kproba --out report.html
  kproba compare people.csv --target income
"""


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    found = argparse.ArgumentParser(
        prog="kproba",
        description="Kernel classifiers whose probabilities you can trust.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("--version", action="version", version=f"kproba {__version__}")
    commands = found.add_subparsers(dest="command", metavar="command", required=True)
    for module in COMMANDS:
        about, _, examples = (module.__doc__ or "").partition("\n\n")
        command = commands.add_parser(
            module.NAME,
            help=about.strip(),
            description=about.strip(),
            epilog=examples.strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument("--json", action="store_true", help="one JSON object on standard output, for machines")
        command.add_argument("--quiet", action="store_true", help="no progress and no remarks")
        command.add_argument("--trace", action="store_true", help="where an error came from, for reports of bugs")
        module.add_options(command)
        command.set_defaults(run=module.run)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    args = parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _remark(args.quiet)
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", KprobaWarning)
        try:
            args.run(args)
        except KeyboardInterrupt:
            print(f"kproba {args.command}: interrupted", file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:  # the reader of our output has seen enough
            sys.stderr.close()
            return FINE
        except (ValueError, TypeError, OSError, ImportError) as error:
            if args.trace:
                raise
            print(f"kproba {args.command}: {error}", file=sys.stderr)
            return BAD_INPUT
    return FINE


def _remark(quiet: bool):
    def show(message, category, *_, **__):
        if not quiet:
            print(f"note: {message}", file=sys.stderr)

    return show
