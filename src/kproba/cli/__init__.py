"""The command ``kproba``: one command a file."""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections.abc import Sequence

from ..exceptions import KprobaWarning
from ..version import __version__
from . import _text, compare, demo, evaluate, fit, predict, report

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


class _Parser(argparse.ArgumentParser):
    """Usage errors repeat what was typed, which may be names of files that a shell filled in."""

    def _print_message(self, message, file=None) -> None:
        super()._print_message(_text.printable(message, keep="\n"), file)


def parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    found = _Parser(
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
            _text.complain(f"kproba {args.command}: interrupted")
            return INTERRUPTED
        except BrokenPipeError:  # the reader of our output has seen enough
            sys.stderr.close()
            return FINE
        except (ValueError, TypeError, OSError, ImportError) as error:
            _text.complain(traceback.format_exc() if args.trace else f"kproba {args.command}: {error}")
            return BAD_INPUT
        except Exception:
            _text.complain(traceback.format_exc())
            return UNFORESEEN
    return FINE


def _remark(quiet: bool):
    def show(message, category, *_, **__):
        if not quiet:
            _text.complain(f"note: {message}")

    return show
