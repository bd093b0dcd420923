"""The ``kproba`` command, with one subcommand per file."""

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
#: Exit status.
SUCCESS, UNEXPECTED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
EPILOG = """\
exit status: 0 success, 1 unexpected error, 2 bad input or options, 130 interrupted

examples:
  kproba demo                                        a first look, no data needed
  kproba fit people.csv --target income --model m.kproba
  kproba predict new.csv --model m.kproba --out answers.csv
  kproba evaluate test.csv --model m.kproba
  kproba report test.csv --model m.kproba --out report.html
  kproba compare people.csv --target income
"""


class _Parser(argparse.ArgumentParser):
    """Escapes usage errors, which repeat the arguments and so may contain arbitrary file names."""

    def _print_message(self, message, file=None) -> None:
        super()._print_message(_text.printable(message, keep="\n"), file)


def parser() -> argparse.ArgumentParser:
    """The parser with all subcommands and their options."""
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
        command.add_argument("--json", action="store_true", help="print one JSON object to standard output")
        command.add_argument("--quiet", action="store_true", help="show no progress and no notes")
        command.add_argument("--trace", action="store_true", help="show the traceback of an error, for bug reports")
        module.add_options(command)
        command.set_defaults(run=module.run)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status."""
    args = parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _show_note(args.quiet)
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", KprobaWarning)
        try:
            args.run(args)
        except KeyboardInterrupt:
            _text.to_stderr(f"kproba {args.command}: interrupted")
            return INTERRUPTED
        except BrokenPipeError:  # the reader of our output has closed the pipe
            sys.stderr.close()
            return SUCCESS
        except (ValueError, TypeError, OSError, ImportError) as error:
            _text.to_stderr(traceback.format_exc() if args.trace else f"kproba {args.command}: {error}")
            return BAD_INPUT
        except Exception:
            _text.to_stderr(traceback.format_exc())
            return UNEXPECTED
    return SUCCESS


def _show_note(quiet: bool):
    def show(message, category, *_, **__):
        if not quiet:
            _text.to_stderr(f"note: {message}")

    return show
